"""The watch over a program: it begins when the program loads torch, and ends with a report."""

import os
import sys
import traceback
from typing import TYPE_CHECKING

from gradwright.diagnostic import ExceptionFacts, Report
from gradwright.doctor.command.output import say
from gradwright.doctor.command.start import when_torch_is_loaded
from gradwright.doctor.forks import call_in_children

if TYPE_CHECKING:
    from torch.utils.hooks import RemovableHandle

    from gradwright.doctor.watch import Watch


class EnoughSteps(BaseException):
    """Ends a program after the number of optimizer steps asked for.

    Not an `Exception`: a program that carries on after errors shall end as well.
    """


class Observation:
    """Watches this process, not its children; `home` is the folder of the program's code.

    `failed` says that the doctor could not watch: finding nothing then means nothing.
    """

    def __init__(self, home: str, steps: int | None, ignore: tuple[str, ...] = ()) -> None:
        self._ignored = ignore
        self._home = home
        self._steps_left = steps
        self._steps_hook: RemovableHandle | None = None
        self._watch: Watch | None = None
        self._stopped = False
        self.failed = False

    def start(self) -> None:
        """Begin as soon as torch is loaded."""
        call_in_children(self._forget)
        when_torch_is_loaded(self._begin)

    def stop(self) -> None:
        """Watch no longer; the report can be worked out later."""
        self._stopped = True
        if self._steps_hook is not None:
            self._steps_hook.remove()
        if self._watch is not None:
            self._watch.stop()

    def report(self, ended: BaseException | None, script: str) -> Report:
        """What was found, given what ended the program."""
        if self._watch is not None:
            self._watch.finish(ended, script)
            self.failed = self._watch.failed
            if self._watch.report is not None:
                return self._watch.report
        return _report_without_watch(ended, script)

    def _forget(self) -> None:
        self.stop()
        self._watch = None

    def _begin(self) -> None:
        if self._stopped:
            return
        try:
            from gradwright.doctor.watch import Watch
        except Exception as error:  # a torch that is broken or too old
            say(f"gradwright: cannot watch; the program goes on: {type(error).__name__}: {error}")
            self.failed = True
            return
        self._watch = Watch(own=self._own_folders(), ignore=self._ignored, show=False)
        self._watch.__enter__()
        if self._steps_left is not None:
            from torch.optim.optimizer import register_optimizer_step_post_hook

            self._steps_hook = register_optimizer_step_post_hook(self._count_step)

    def _own_folders(self) -> tuple[str, ...]:
        """The program's folder if it lies among the libraries, as that of an installed program."""
        from gradwright.doctor.journal import UserCode

        inside = os.path.join(self._home, "")
        torch_file = os.path.realpath(sys.modules["torch"].__file__ or "")
        if not self._home or UserCode()(inside) or torch_file.startswith(inside):
            return ()
        return (self._home,)

    def _count_step(self, *_: object) -> None:
        assert self._steps_left is not None
        self._steps_left -= 1
        if self._steps_left <= 0:
            raise EnoughSteps


def _report_without_watch(ended: BaseException | None, script: str) -> Report:
    """The report of a program that never loaded torch."""
    exception = _facts(ended) if isinstance(ended, Exception) else None
    return Report(
        script=script,
        outcome="finished" if ended is None else "raised" if exception else "stopped",
        exception=exception,
        steps=0,
        diagnostics=(),
    )


def _facts(error: Exception) -> ExceptionFacts:
    last = traceback.extract_tb(error.__traceback__)[-1:]
    file, line = (last[0].filename, last[0].lineno or 0) if last else ("", 0)
    return ExceptionFacts(type(error).__name__, _message(error), file, line)


def _message(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # the program's own class may fail at this
        return "<exception str() failed>"
