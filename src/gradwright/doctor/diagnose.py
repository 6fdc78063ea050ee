"""From a crash to diagnostics: ask every rule, in an order that makes sense."""

from collections.abc import Callable

from gradwright.diagnostic import Diagnostic
from gradwright.doctor.crash import Crash, chain
from gradwright.doctor.rules import RULES


def diagnose(
    crash: Crash,
    on_failure: Callable[[BaseException], None],
    ignored: tuple[str, ...] = (),
) -> list[Diagnostic]:
    """What the first rule says that knows the cause of the exception, or of the one behind it.

    `ignored` codes, or beginnings of codes, are not asked. A rule that fails is left out and
    reported to `on_failure`.
    """
    asked = [rule for rule in RULES if not rule.code.startswith(ignored)]
    for exception in chain(crash.exception):
        same = exception is crash.exception
        current = crash if same else Crash(exception, crash.journal, crash.objects)
        for rule in asked:
            try:
                found = rule.explain(current)
            except Exception as error:
                on_failure(error)
                continue
            if found is not None:
                return [found]
    return []
