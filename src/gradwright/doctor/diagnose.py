"""From a crash to diagnostics: ask every rule, in an order that makes sense."""

from collections.abc import Callable

from gradwright.diagnostic import Diagnostic
from gradwright.doctor.crash import Crash, chain
from gradwright.doctor.rules import RULES


def diagnose(crash: Crash, on_failure: Callable[[BaseException], None]) -> list[Diagnostic]:
    """What the first rule says that knows the cause of the exception, or of the one behind it.

    A rule that fails is left out and reported to `on_failure`.
    """
    for exception in chain(crash.exception):
        same = exception is crash.exception
        current = crash if same else Crash(exception, crash.journal, crash.objects)
        for rule in RULES:
            try:
                found = rule.explain(current)
            except Exception as error:
                on_failure(error)
                continue
            if found is not None:
                return [found]
    return []
