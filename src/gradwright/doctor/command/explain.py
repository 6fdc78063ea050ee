"""`gradwright explain CODE` and `gradwright rules`: the rules' documentation on a terminal."""

import inspect
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from shutil import get_terminal_size

from gradwright.doctor.command.output import colored, say, show
from gradwright.doctor.rules import RULES, Rule

UNKNOWN = 2
_UNDERLINE = re.compile(r"[-=]{3,}")
_BOLD, _DIM, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"


def explain(code: str, rules: Sequence[Rule] = RULES) -> int:
    """Print what is known of the rule with this code or name; returns the exit status."""
    rule = _find(code, rules)
    if rule is None:
        say(_unknown(code, rules))
        return UNKNOWN
    show(documentation(rule, color=colored(sys.stdout)))
    return 0


def list_rules(rules: Sequence[Rule] = RULES) -> int:
    """Print a line for each rule: code, name, summary; returns the exit status."""
    if not rules:
        say("gradwright: there are no rules in this version.")
        return 0
    width = get_terminal_size().columns if sys.stdout.isatty() else None
    show("\n".join(table(rules, color=colored(sys.stdout), width=width)))
    return 0


def documentation(rule: Rule, *, color: bool = False) -> str:
    """The rule's documentation with a heading: sections, indented examples."""
    heading = f"{rule.code}  {rule.name.replace('-', ' ')}"
    lines = inspect.cleandoc(rule.documentation).split("\n")
    return "\n".join([_styled(heading, _BOLD, color), "", *_styled_lines(lines, color)])


def table(rules: Sequence[Rule], *, color: bool = False, width: int | None = None) -> list[str]:
    """The rules by code, one per line; summaries wrap within `width` columns."""
    longest = max(len(rule.name) for rule in rules)
    rows = []
    for rule in sorted(rules, key=lambda rule: rule.code):
        start = f"{rule.code}  {rule.name:<{longest}}  "
        room = max(20, width - len(start)) if width is not None else len(rule.summary) + 1
        first, *rest = textwrap.wrap(rule.summary, room) or [""]
        rows.append(_styled(rule.code, _BOLD, color) + start[len(rule.code) :] + first)
        rows += [" " * len(start) + line for line in rest]
    return rows


def _find(code: str, rules: Sequence[Rule]) -> Rule | None:
    wanted = _spoken(code)
    return next((rule for rule in rules if wanted in (_spoken(rule.code), rule.name)), None)


def _spoken(name: str) -> str:
    return re.sub(r"[\s_-]+", "-", name.strip().lower())


def _unknown(code: str, rules: Sequence[Rule]) -> str:
    wanted = _spoken(code)
    known = {name: rule for rule in rules for name in (rule.code.lower(), rule.name)}
    near = dict.fromkeys(known[name] for name in get_close_matches(wanted, known, cutoff=0.7))
    close = ", ".join(f"{rule.code} ({rule.name})" for rule in near)
    hint = f" Did you mean {close}?" if close else ""
    return f"gradwright: there is no rule {code!r}.{hint} All rules: gradwright rules"


def _styled_lines(lines: Sequence[str], color: bool) -> Iterator[str]:
    """Underlined lines become headings, indented lines are code."""
    following = [*lines[1:], ""]
    for line, below in zip(lines, following, strict=True):
        if _UNDERLINE.fullmatch(below) and line:
            yield _styled(line, _BOLD, color)
        elif _UNDERLINE.fullmatch(line):
            if not color:
                yield line
        elif line.startswith("    "):
            yield _styled(line, _DIM, color)
        else:
            yield line


def _styled(text: str, style: str, color: bool) -> str:
    return f"{style}{text}{_PLAIN}" if color else text
