"""Runs the Python of a page of documentation, and compares what it prints with what is shown."""

import contextlib
import io
import re
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line of the page where the text begins."""

    language: str
    text: str
    line: int
    end: int  # line of the closing fence


def blocks(path: Path) -> list[Block]:
    """All fenced blocks of a page that name a language, in order."""
    page = path.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(page):
        line = page.count("\n", 0, match.start(2)) + 1
        found.append(Block(match[1], match[2], line, line + match[2].count("\n")))
    return found


def run(path: Path, names: dict[str, object]) -> None:
    """Run the Python blocks in order, as one program that starts with `names`.

    What a block prints has to be what the `text` block right below it shows, if there is one.
    """
    page = blocks(path)
    for number, block in enumerate(page):
        if block.language == "python":
            said = run_block(path, block, block.text, names)
            shown = _shown(page[number + 1 :], block)
            assert said == shown, f"{path.name}:{block.line} prints\n{said}\nin place of\n{shown}"


def run_block(path: Path, block: Block, text: str, names: dict[str, object]) -> str:
    """Run `text` in place of the block's; what it prints. Errors name the page's line."""
    code = compile("\n" * (block.line - 1) + text, str(path), "exec")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(code, names)
    return said.getvalue()


def before(diff: str) -> str:
    """The program that a diff starts from."""
    return _side(diff, "+")


def after(diff: str) -> str:
    """The program that a diff leads to."""
    return _side(diff, "-")


def _side(diff: str, without: str) -> str:
    kept = [line[2:] for line in diff.splitlines() if not line.startswith(without)]
    return "\n".join(kept) + "\n"


def _shown(rest: list[Block], block: Block) -> str:
    """The output that the page shows for a block: one blank line apart, at most."""
    if rest and rest[0].language == "text" and rest[0].line - block.end <= 3:
        return rest[0].text
    return ""
