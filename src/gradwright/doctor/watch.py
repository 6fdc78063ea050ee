"""`watch`: record a stretch of a program and explain what went wrong in it."""

import sys
import traceback
from pathlib import Path
from types import TracebackType

import torch

from gradwright.diagnostic import Diagnostic, ExceptionFacts, Report
from gradwright.diagnostic.model import Outcome
from gradwright.doctor.crash import Crash
from gradwright.doctor.diagnose import diagnose
from gradwright.doctor.forks import call_in_children
from gradwright.doctor.journal import Journal, UserCode


class Watch:
    """Records from `__enter__` to `__exit__`; afterwards `report` and `diagnostics` are there.

    It never changes the program: results, random numbers and printed output stay the same, and
    an exception goes on its way. If the doctor itself fails, it says so once on standard error
    and stops watching.
    """

    def __init__(
        self,
        *objects: object,
        own: tuple[str, ...] = (),
        ignore: tuple[str, ...] = (),
        show: bool = True,
    ) -> None:
        self.report: Report | None = None
        self._show = show
        self._own = own
        self._ignored = ignore
        self._objects = objects
        self._failures: list[BaseException] = []
        self._journal: Journal | None = None

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What was found, the explanation of an exception first."""
        return self.report.diagnostics if self.report is not None else ()

    @property
    def failed(self) -> bool:
        """Whether the doctor had to step aside: finding nothing then means nothing."""
        return bool(self._failures)

    def __enter__(self) -> "Watch":
        call_in_children(self.abandon)
        try:
            self._journal = Journal(UserCode(self._own), self._step_aside)
            self._journal.start(sys._getframe(1))
        except Exception as error:
            self._step_aside(error)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.finish(exception)
        if self._show and self.diagnostics:
            for diagnostic in self.diagnostics:
                print(diagnostic, file=sys.stderr)

    def stop(self) -> None:
        """Stop recording; `finish` works out the report later."""
        try:
            if self._journal is not None:
                self._journal.stop()
        except Exception as error:
            self._step_aside(error)

    def abandon(self) -> None:
        """Stop recording and forget it: a forked child is not watched."""
        self.stop()
        self._journal = None

    def finish(self, exception: BaseException | None, script: str = "") -> None:
        """Stop recording and work out the report."""
        try:
            if self._journal is not None:
                self._journal.stop()
                with torch._C.DisableTorchFunction():  # tensor subclasses must not hear of it
                    self.report = self._make_report(self._journal, exception, script)
        except Exception as error:
            self._step_aside(error)

    def _make_report(
        self, journal: Journal, exception: BaseException | None, script: str
    ) -> Report:
        crash = None
        if isinstance(exception, Exception):
            crash = Crash(exception, journal, self._objects)
        found = diagnose(crash, self._step_aside, self._ignored) if crash is not None else []
        return Report(
            script=script,
            outcome=_outcome(exception),
            exception=_facts(crash, exception),
            steps=journal.optimizers.count,
            diagnostics=tuple(found),
        )

    def _step_aside(self, error: BaseException) -> None:
        if not self._failures:
            last = traceback.extract_tb(error.__traceback__)[-1:]
            where = "".join(f" ({Path(entry.filename).name}:{entry.lineno})" for entry in last)
            print(
                f"gradwright: the doctor failed and stepped aside; the program goes on: "
                f"{type(error).__name__}: {error}{where}",
                file=sys.stderr,
            )
        self._failures.append(error)


def watch(*objects: object) -> Watch:
    """Watch the code in a `with` block; pass the model and the optimizer for their names.

    Example:
        >>> import torch
        >>> with watch() as seen:
        ...     loss = torch.nn.Linear(2, 1)(torch.ones(1, 2)).sum()
        ...     loss.backward()
        >>> seen.diagnostics
        ()
    """
    return Watch(*objects)


def _outcome(exception: BaseException | None) -> Outcome:
    if exception is None or (isinstance(exception, SystemExit) and not exception.code):
        return "finished"
    return "raised" if isinstance(exception, Exception) else "stopped"


def _facts(crash: Crash | None, exception: BaseException | None) -> ExceptionFacts | None:
    if crash is None or exception is None:
        return None
    at = crash.raised_at
    return ExceptionFacts(
        type=type(exception).__name__,
        message=crash.message,
        file=at.file if at is not None else "",
        line=at.line if at is not None else 0,
    )
