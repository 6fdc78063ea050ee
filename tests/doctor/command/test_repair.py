"""`gradwright doctor --fix`: proposals, files, verdicts, and one whole round."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from gradwright.diagnostic import Diagnostic, Edit, ExceptionFacts, Fix, Report
from gradwright.doctor.command.changes import diff
from gradwright.doctor.command.options import Options
from gradwright.doctor.command.repair import Run, judge, propose, repair
from gradwright.doctor.command.replacement import RefusedError, git_state, replace_files
from tests.doctor.commands import GRADWRIGHT, run

BROKEN = """\
import sys, torch
embed = torch.nn.Embedding(4, 2)
optimizer = torch.optim.SGD(embed.parameters(), 0.1)
ids = torch.arange(4)
features = embed(ids)
for step in range(2):
    loss = features.tanh().sum()
    loss.backward()
    optimizer.step()
print(sys.argv)
"""


def diagnostic(code: str = "GW101", summary: str = "x", fixes: tuple[Fix, ...] = ()) -> Diagnostic:
    return Diagnostic(code, "graph-used-twice", "other", "error", summary, "", (), fixes)


def report(*found: Diagnostic, raised: bool = False) -> Report:
    exception = ExceptionFacts("RuntimeError", "", "x.py", 1) if raised else None
    return Report("x.py", "raised" if raised else "finished", exception, 0, found)


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


# -- one whole round ------------------------------------------------------------------------------


def test_fix_repairs_the_script_and_says_so(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(BROKEN)
    script.chmod(0o754)

    found = run(
        [*GRADWRIGHT, "doctor", "--fix", "--json", "first.json", "train.py", "--fix"], tmp_path
    )

    assert found.status == 0, found.err
    assert found.out == "['train.py', '--fix']\n"
    assert "+    features = embed(ids)\n" in found.err
    assert found.err.endswith("gradwright: GW101 (graph used twice) is gone.\n")
    assert "    features = embed(ids)\n    loss" in script.read_text()
    assert stat.S_IMODE(script.stat().st_mode) == 0o754
    assert (tmp_path / "train.py.orig").read_text() == BROKEN
    assert '"outcome": "raised"' in (tmp_path / "first.json").read_text()
    assert sorted(os.listdir(tmp_path)) == ["first.json", "train.py", "train.py.orig"]


def test_nothing_happens_to_a_script_that_exits(tmp_path: Path) -> None:
    script = tmp_path / "exits.py"
    script.write_text("import sys\nsys.exit(3)\n")

    found = run([*GRADWRIGHT, "doctor", "--fix", "exits.py"], tmp_path)

    assert found.status == 3
    assert found.err.count("\n") == 1, "one run, one verdict"
    assert os.listdir(tmp_path) == ["exits.py"]


def test_a_rank_does_not_repair(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")

    assert repair(Options(("x.py",), fix=True)) == 2
    assert "Start it without torchrun" in capsys.readouterr().err


# -- proposals and verdicts -----------------------------------------------------------------------


def test_the_first_fix_that_says_what_to_write_is_proposed() -> None:
    words = Fix("think")
    edits = Fix("write", (Edit("x.py", 1, 1, "pass\n"),))
    first, second = diagnostic(fixes=(words,)), diagnostic("GW201", fixes=(words, edits, edits))

    assert propose(report(first, second)) == (second, edits)
    assert propose(report(first)) is None


@pytest.mark.parametrize(
    ("second", "said", "status"),
    [
        (Run(0, report()), "is gone.", 0),
        (Run(3, report()), "is gone.", 3),
        (Run(1, report(diagnostic(), raised=True)), "is still there after the fix.", 1),
        (Run(0, report(diagnostic())), "is still there after the fix.", 1),
        (
            Run(1, report(diagnostic("GW202", "cut"))),
            "is gone. Another problem now: GW202, cut.",
            1,
        ),
        (Run(1, report(diagnostic(summary="y"))), "is gone. Another problem now: GW101, y.", 1),
        (Run(2, report(raised=True)), "is gone. The program now fails for another reason.", 2),
        (Run(130, report()), "the second run was ended from outside.", 130),
        (Run(137, None), "the second run was ended from outside.", 137),
    ],
)
def test_judgement(second: Run, said: str, status: int) -> None:
    text, found = judge(diagnostic(), second)

    assert text.startswith("GW101 (graph used twice)")
    assert text.endswith(said)
    assert found == status


# -- files ----------------------------------------------------------------------------------------


def test_a_file_git_knows_is_replaced_without_a_copy(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("old\n")
    git(tmp_path, "init")
    assert git_state(file) == "unknown"
    git(tmp_path, "add", "train.py")
    assert git_state(file) == "changed"
    git(tmp_path, "commit", "-m", "first")
    assert git_state(file) == "clean"

    assert replace_files({str(file): "new\n"}) == []
    assert file.read_text() == "new\n"
    assert git_state(file) == "changed"


def test_uncommitted_changes_are_safe(tmp_path: Path) -> None:
    file, other = tmp_path / "train.py", tmp_path / "other.py"
    for each in (file, other):
        each.write_text("old\n")
    git(tmp_path, "init")
    git(tmp_path, "add", "train.py")
    texts = {str(other): "new\n", str(file): "new\n"}

    with pytest.raises(RefusedError, match="uncommitted changes"):
        replace_files(texts)
    assert (file.read_text(), other.read_text()) == ("old\n", "old\n")

    copies = replace_files(texts, force=True)
    assert [copy.name for copy in copies] == ["other.py.orig", "train.py.orig"]
    assert {copy.read_text() for copy in copies} == {"old\n"}
    assert (file.read_text(), other.read_text()) == ("new\n", "new\n")


def test_a_copy_is_never_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    for text in ("1", "2", "3"):
        file.write_text(text)
        replace_files({str(file): "new"})

    copies = {path.name: path.read_text() for path in tmp_path.glob("*.orig*")}
    assert copies == {"train.py.orig": "1", "train.py.orig2": "2", "train.py.orig3": "3"}


def test_encoding_line_ends_and_links_stay(tmp_path: Path) -> None:
    file, link = tmp_path / "real.py", tmp_path / "link.py"
    file.write_bytes("# coding: latin-1\r\n# é\r\n".encode("latin-1"))
    link.symlink_to(file)

    replace_files({str(link): "# coding: latin-1\r\n# éè\r\n"})

    assert file.read_bytes() == "# coding: latin-1\r\n# éè\r\n".encode("latin-1")
    assert link.is_symlink()


def test_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [tmp_path / name for name in ("a.py", "b.py")]
    for file in files:
        file.write_text("old\n")
    replace = os.replace

    def fail_at_second(source: Path, target: Path) -> None:
        if target == files[1]:
            raise OSError("the disk is full")
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail_at_second)
    with pytest.raises(RefusedError, match="the disk is full"):
        replace_files({str(file): "new\n" for file in files})

    assert [file.read_text() for file in files] == ["old\n", "old\n"]
    assert not list(tmp_path.glob(".*")), "nothing half-written is left"


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="needs a file that it may write"):
        replace_files({str(tmp_path / "absent.py"): ""})


def test_the_diff_shows_nothing_a_terminal_would_obey(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("a\nb = '\x1b[2J'\nc")

    rows = diff({str(file): "a\nb = 2\nc"}).split("\n")

    assert rows[2:] == ["@@ -1,3 +1,3 @@", " a", "-b = '\\x1b[2J'", "+b = 2", " c"]
    assert "\x1b[32m+b = 2\x1b[0m" in diff({str(file): "a\nb = 2\nc"}, color=True)
