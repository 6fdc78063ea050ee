"""What the command line says: the help, and the options of `gradwright doctor`."""

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from gradwright.doctor.command.output import Format, show

HELP = """\
Find out what your gradients are doing.

  gradwright doctor SCRIPT [ARGS...]      run a training script, explain what goes wrong
  gradwright doctor -m MODULE [ARGS...]   the same for a module, as python -m
  gradwright explain CODE                 read about a rule, e.g. gradwright explain GW101
  gradwright rules                        list all rules

doctor options (before SCRIPT):
  --steps N            stop after N optimizer steps          [default: run to the end]
  --ignore GW203,GW5   leave these rules out
  --format text|github|json            what goes to standard error [default: text]
  --json FILE          also write the report as JSON (format version 1)
  --strict             exit 1 on warnings too
  --fix                apply the first fix, run again and say whether the problem is gone
  --force              with --fix: also change files that have uncommitted changes

Exit status: 0 nothing found · 1 problem explained · 2 the script failed for another reason
"""
USAGE = "gradwright doctor [OPTIONS] SCRIPT [ARGS...]"

_CODE = re.compile(r"GW[0-9]{1,3}")


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `gradwright doctor`; `program` is the script or module and its arguments."""

    program: tuple[str, ...] = ()
    module: bool = False
    steps: int | None = None
    ignore: tuple[str, ...] = ()
    format: Format = "text"
    json: Path | None = None
    strict: bool = False
    fix: bool = False
    force: bool = False

    def as_arguments(self) -> list[str]:
        """The arguments after `gradwright doctor` that mean the same."""
        written = ["--format", self.format]
        if self.steps is not None:
            written += ["--steps", str(self.steps)]
        if self.ignore:
            written += ["--ignore", ",".join(self.ignore)]
        if self.json is not None:
            written += ["--json", str(self.json)]
        flags = ("strict", "fix", "force")
        written += [f"--{flag}" for flag in flags if getattr(self, flag)]
        return [*written, "-m" if self.module else "--", *self.program]


class CommandParser(argparse.ArgumentParser):
    """A parser with our help text, which never takes half a name for an option."""

    def __init__(self, usage: str) -> None:
        super().__init__(usage=usage, add_help=False, allow_abbrev=False)
        self.add_argument("-h", "--help", action="help")

    def print_help(self, file: object = None) -> None:
        """Print the one help text."""
        show(HELP.rstrip())

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and end with status 2."""
        self.exit(2, f"gradwright: {message}\nusage: {self.usage}\nhelp:  gradwright --help\n")


def parse_doctor(arguments: Sequence[str]) -> Options:
    """Read the arguments after `gradwright doctor`; a mistake ends the program with status 2."""
    parser = _doctor_parser()
    found = parser.parse_args(list(arguments))
    is_module = found.module is not None
    program = found.module if is_module else found.script
    if not is_module and program[:1] == ["--"]:
        program = program[1:]
    if not program:
        parser.error("doctor needs a script to run, and found none.")
    if found.force and not found.fix:
        parser.error("--force says that --fix may change more files; it needs --fix.")
    return Options(
        program=tuple(program),
        module=is_module,
        steps=found.steps,
        ignore=found.ignore,
        format=found.format,
        json=found.json,
        strict=found.strict,
        fix=found.fix,
        force=found.force,
    )


def _doctor_parser() -> CommandParser:
    parser = CommandParser(USAGE)
    parser.add_argument("--steps", type=_steps)
    parser.add_argument("--ignore", type=_codes, default=())
    parser.add_argument("--format", choices=("text", "github", "json"), default="text")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("--force", action="store_true")
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER)
    # PARSER takes a first word and all that follows it, options too: they are the script's.
    script = parser.add_argument("script", nargs=argparse.PARSER, default=[])
    script.required = False
    return parser


def _steps(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a number of steps from 1, found {text!r}")
    return int(text)


def _codes(text: str) -> tuple[str, ...]:
    codes = tuple(code.strip().upper() for code in text.split(",") if code.strip())
    wrong = [code for code in codes if not _CODE.fullmatch(code)]
    if wrong or not codes:
        found = ", ".join(wrong) or "nothing"
        raise argparse.ArgumentTypeError(
            f"expected codes or their beginnings, such as GW203,GW5; found {found}"
        )
    return codes
