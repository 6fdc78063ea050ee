"""From a journal and a crash to diagnostics: ask every rule, in an order that makes sense."""

from collections.abc import Callable, Sequence

from gradwright.diagnostic import Diagnostic
from gradwright.doctor.crash import Crash, chain
from gradwright.doctor.journal import Journal
from gradwright.doctor.rules import RULES

_RANK = {"error": 0, "warning": 1, "note": 2}


def diagnose(
    journal: Journal,
    crash: Crash | None,
    objects: Sequence[object],
    on_failure: Callable[[BaseException], None],
) -> list[Diagnostic]:
    """What the rules say. A rule that fails is left out and reported to `on_failure`."""
    if crash is None:
        return []
    for exception in chain(crash.exception):
        current = crash if exception is crash.exception else Crash(exception, journal)
        for rule in RULES:
            try:
                found = rule.explain(current)
            except Exception as error:
                on_failure(error)
                continue
            if found is not None:
                return [found]
    return []
