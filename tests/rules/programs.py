"""Reads the Markdown files of the rules, and runs `gradwright doctor` on the programs in them."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from gradwright.diagnostic import Report, apply_to_files, from_json

_SOURCE = Path(__file__).parents[2] / "src"
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_BLOCK = re.compile(r"^(`{3,})(\w*) ?(\S*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
_MESSAGE = re.compile(r"^(?:error|warning|note)\[GW\d+\]", re.MULTILINE)


@dataclass(frozen=True)
class RuleText:
    """One Markdown file: a broken program, what the doctor says of it, the repaired program."""

    code: str
    broken: dict[str, str]
    message: str
    fixed: dict[str, str]


@dataclass(frozen=True)
class Visit:
    """What came of one run under the doctor."""

    status: int
    report: Report
    said: str


def read_rule(path: Path) -> RuleText:
    """The parts of a rule's Markdown file. Helper modules are kept where `Fixed` has none."""
    parts = _SECTION.split(path.read_text(encoding="utf-8"))
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    broken = _files(sections["Broken"])
    return RuleText(
        code=path.stem.partition("-")[0],
        broken=broken,
        message=_BLOCK.findall(sections["Message"])[0][3].rstrip("\n"),
        fixed=broken | _files(sections["Fixed"]),
    )


def write(files: dict[str, str], folder: Path) -> Path:
    """Write the programs into a new folder."""
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def visit(folder: Path) -> Visit:
    """Run `gradwright doctor train.py` in a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "gradwright", "doctor", "--json", "report.json", "train.py"],
        cwd=folder,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )
    file = folder / "report.json"
    assert file.exists(), done.stderr  # the command itself failed
    data = json.loads(file.read_text(encoding="utf-8"))
    said = _MESSAGE.search(done.stderr)
    message = done.stderr[said.start() :].rstrip("\n") if said else ""
    return Visit(done.returncode, from_json(data, folder), message)


def repair(report: Report) -> None:
    """Apply the first fix of the first diagnostic to the files it names."""
    for file, text in apply_to_files(report.diagnostics[0].fixes[0]).items():
        Path(file).write_text(text, encoding="utf-8", newline="")


def _files(section: str) -> dict[str, str]:
    return {name: text for _, kind, name, text in _BLOCK.findall(section) if kind == "python"}


def _environment() -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(_SOURCE), os.environ.get("PYTHONPATH", "")]))
    settings = {"PYTHONPATH": path, "PYTHONUTF8": "1", "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
    return {**os.environ, **settings, "PYTHONWARNINGS": "ignore", "GLOO_SOCKET_IFNAME": "lo"}
