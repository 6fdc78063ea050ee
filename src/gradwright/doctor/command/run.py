"""Run a program under watch, and announce its end as Python would."""

import sys
import traceback
from dataclasses import dataclass

from gradwright.doctor.command.observation import EnoughSteps, Observation
from gradwright.doctor.command.options import Options
from gradwright.doctor.command.output import say
from gradwright.doctor.command.script import Program, ProgramError, open_module, open_script
from gradwright.doctor.command.tracebacks import without_doctor


@dataclass(frozen=True, slots=True)
class End:
    """How a run ended: with what exception, and in what program unless none was found."""

    exception: BaseException | None
    program: Program | None

    @property
    def raised(self) -> bool:
        """Whether Python would print a traceback."""
        quiet = SystemExit | EnoughSteps
        return self.exception is not None and not isinstance(self.exception, quiet)

    @property
    def status(self) -> int:
        """The exit status of the program itself."""
        if not isinstance(self.exception, SystemExit):
            return 1 if self.raised else 0
        code = self.exception.code
        return code if isinstance(code, int) else 0 if code is None else 1


def run_program(options: Options, observation: Observation) -> End:
    """Run the program that `options` name, to its end whatever that is.

    Raises:
        ProgramError: the program cannot be started.
    """
    open_program = open_module if options.module else open_script
    program = None
    try:
        observation.start()
        program = open_program(options.program[0], options.program[1:])
        program.run()
    except ProgramError:
        raise
    except BaseException as error:
        return End(error, program)
    finally:
        observation.stop()
    return End(None, program)


def announce(end: End) -> None:
    """Print what Python prints at such an end: a traceback, or the message of `sys.exit`."""
    if end.raised:
        assert end.exception is not None
        without_doctor(end.exception, None if end.program is None else end.program.code)
        _show_traceback(end.exception)
    elif isinstance(end.exception, SystemExit) and not isinstance(end.exception.code, int | None):
        say(str(end.exception.code))


def _show_traceback(exception: BaseException) -> None:
    """Print the traceback, with the hook that the program may have set."""
    sys.last_type, sys.last_value = type(exception), exception
    sys.last_traceback = exception.__traceback__
    try:
        sys.excepthook(type(exception), exception, exception.__traceback__)
    except SystemExit:
        pass  # a hook may end Python; the report comes first
    except Exception as error:
        without_doctor(error, None)
        trouble = "".join(traceback.format_exception(error))
        say(f"Error in sys.excepthook:\n{trouble}\nOriginal exception was:")
        sys.__excepthook__(type(exception), exception, exception.__traceback__)
