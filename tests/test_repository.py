"""The texts and settings at the top of the repository keep their promises."""

import ast
import re
import subprocess
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
# Folders of the machines that this is written on; other homes, as /home/me, are examples.
MACHINES = ["/root", "/work", str(ROOT), *(str(home) for home in [Path.home()] if home.parts[1:])]
MACHINE_PATH = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, MACHINES))})/\w")
PIN = re.compile(r"[a-z0-9.-]+==[0-9][\w.]*")
# A block of Markdown: its language and its text.
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_python_blocks_parse(name: str) -> None:
    blocks = BLOCK.findall((ROOT / name).read_text(encoding="utf-8"))
    assert blocks

    for language, text in blocks:
        if language == "python":
            ast.parse(text)
        elif language == "diff" and "import" in text:
            ast.parse(_after(text))


def test_readme_offers_targets_that_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    offered = set(re.findall(r"^make ([a-z-]+)", text, re.MULTILINE))

    assert {"demo", "test"} <= offered <= _targets()


def test_make_alone_lists_every_target() -> None:
    listed = _output("make", "--no-print-directory")

    assert set(re.findall(r"^make ([a-z-]+) +\w", listed, re.MULTILINE)) == _targets()


def test_no_file_names_a_path_of_a_machine() -> None:
    found = [
        f"{name}:{number}: {line}"
        for name, text in _texts()
        for number, line in enumerate(text.splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]

    assert found == []


@pytest.mark.parametrize("folder", MACHINES)
def test_a_path_of_a_machine_would_be_found(folder: str) -> None:
    assert MACHINE_PATH.search(f'open("{folder}/train.py")')
    assert not MACHINE_PATH.search(f"https://example.org{folder}/page")


def test_changelog_has_a_place_for_the_next_change() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)

    assert headings[0] == "[Unreleased]"


def test_licence_is_mit() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")

    assert text.startswith("MIT License")
    assert re.search(r"Copyright \(c\) \d{4} gradwright contributors", text)
    assert _project()["license"] == "MIT"


def test_constraints_are_pins_and_nothing_else() -> None:
    """No hosts, no paths, no local versions, no name twice."""
    lines = _constraint_lines()

    assert [line for line in lines if not PIN.fullmatch(line)] == []
    assert len(_pins()) == len(lines)


def test_every_declared_requirement_is_pinned_within_its_range() -> None:
    project = _project()
    declared = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    pins = _pins()

    for requirement in map(Requirement, declared):
        pin = pins.get(canonicalize_name(requirement.name))
        assert pin is not None, f"constraints.txt does not pin {requirement.name}"
        assert requirement.specifier.contains(pin), f"{requirement} excludes the pinned {pin}"


def _after(diff: str) -> str:
    """The program that a diff block leads to."""
    lines = [line for line in diff.splitlines() if not line.startswith("-")]
    return "\n".join(line[2:] for line in lines)


def _targets() -> set[str]:
    """The names after `.PHONY:` in the Makefile."""
    match = re.search(r"^\.PHONY:(.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert match
    return set(match[1].split())


def _texts() -> list[tuple[str, str]]:
    """Name and content of the text files that git tracks or would add."""
    try:
        names = _output("git", "ls-files", "--cached", "--others", "--exclude-standard")
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("not a git repository")
    texts = []
    for name in names.splitlines():
        try:
            texts.append((name, (ROOT / name).read_text(encoding="utf-8")))
        except (UnicodeDecodeError, FileNotFoundError):  # data, or deleted and not yet committed
            continue
    return texts


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _constraint_lines() -> list[str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _pins() -> dict[str, str]:
    pairs = (line.split("==") for line in _constraint_lines())
    return {canonicalize_name(name): version for name, version in pairs}
