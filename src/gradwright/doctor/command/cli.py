"""The command `gradwright`."""

import os
import sys
from collections.abc import Sequence

from gradwright import __version__
from gradwright.doctor.command.options import HELP, CommandParser, parse_doctor
from gradwright.doctor.command.output import OutputError, say, show
from gradwright.doctor.command.script import ProgramError

MISUSED = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (None: those of the process); returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    command, rest = (given[0], given[1:]) if given else ("", [])
    match command:
        case "doctor":
            return _doctor(rest)
        case "explain":
            return _explain(rest)
        case "rules":
            return _rules(rest)
        case "-h" | "--help":
            show(HELP.rstrip())
            return 0
        case "--version":
            print(f"gradwright {__version__}")
            return 0
    return _misused(command)


def _doctor(arguments: Sequence[str]) -> int:
    options = parse_doctor(arguments)
    try:
        if options.fix:
            from gradwright.doctor.command.repair import repair

            return repair(options)
        from gradwright.doctor.command.examine import examine

        return examine(options)
    except (ProgramError, OutputError) as error:
        say(str(error))
        return MISUSED


def _explain(arguments: Sequence[str]) -> int:
    parser = CommandParser("gradwright explain CODE")
    parser.add_argument("code")
    from gradwright.doctor.command.explain import explain

    return explain(parser.parse_args(list(arguments)).code)


def _rules(arguments: Sequence[str]) -> int:
    CommandParser("gradwright rules").parse_args(list(arguments))
    from gradwright.doctor.command.explain import list_rules

    return list_rules()


def _misused(command: str) -> int:
    if not command:
        say(HELP.rstrip())
        return MISUSED
    hint = f" To run a script: gradwright doctor {command}" if os.path.exists(command) else ""
    say(
        f"gradwright: expected doctor, explain or rules, found {command!r}.{hint}\n"
        "help:  gradwright --help"
    )
    return MISUSED
