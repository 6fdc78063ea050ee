"""The command `gradwright`: its options, exit statuses and reports."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gradwright.diagnostic import Diagnostic, Report, from_json
from gradwright.diagnostic.model import Severity
from gradwright.doctor.command.cli import main
from gradwright.doctor.command.examine import exit_status
from gradwright.doctor.command.options import Options, parse_doctor
from gradwright.doctor.command.output import OutputError, check_writable, rank_file, write_json
from gradwright.doctor.command.run import End
from tests.doctor.commands import GRADWRIGHT, Result, doctor, run

BROKEN = """
import torch
embed = torch.nn.Embedding(4, 2)
features = embed(torch.arange(4))
print("started")
for step in range(2):
    features.tanh().sum().backward()
"""
STEPS = """
import os, torch
weight = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([weight], 0.1)
try:
    for step in range(9):
        weight.square().sum().backward()
        optimizer.step()
        print(step, flush=True)
        if step == 0 and os.fork() == 0:
            optimizer.step()
            optimizer.step()
            raise ValueError("in the child")
        os.wait() if step == 0 else None
finally:
    print("finally")
"""
RANKS = """
import sys, torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
loss = model(torch.ones(4, 2)).sum()
loss.backward()
dist.barrier()
if rank == 1:
    loss.backward()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(scope="module")
def explained(folder: Path) -> Result:
    (folder / "broken.py").write_text(BROKEN)
    return doctor(folder, "broken.py")


def test_a_problem_is_explained_below_the_traceback(explained: Result) -> None:
    traceback, _, message = explained.err.partition("\n\n")

    assert explained.status == 1
    assert explained.out == "started\n"
    assert traceback.startswith('Traceback (most recent call last):\n  File "')
    assert "RuntimeError: Trying to backward through the graph a second time" in traceback
    assert "gradwright" not in traceback
    assert "handle_torch_function" not in traceback
    assert traceback.count("in backward\n") == 2, "Tensor.backward and autograd.backward, once"
    assert message.startswith("error[GW101] graph used twice: `features`")


def test_the_report_says_what_was_shown(explained: Result, folder: Path) -> None:
    assert explained.report is not None
    report = from_json(explained.report, folder)

    assert explained.report["script"] == "broken.py"
    assert (report.outcome, report.steps) == ("raised", 0)
    assert report.exception is not None and report.exception.line == 7
    assert [each.code for each in report.diagnostics] == ["GW101"]
    assert {label.span.file for label in report.diagnostics[0].labels} == {
        str(folder / "broken.py")
    }


def test_an_ignored_rule_explains_nothing(explained: Result, folder: Path) -> None:
    found = doctor(folder, "--ignore", "gw1", "--format", "json", "broken.py")
    shown = json.loads(found.err.splitlines()[-1])

    assert found.status == 2
    assert shown == found.report
    assert shown["diagnostics"] == []


def test_steps_end_the_program_in_good_order(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(STEPS)

    found = doctor(tmp_path, "--steps", "3", "--format", "github", "steps.py")

    assert found.report is not None
    assert (found.status, found.report["outcome"], found.report["steps"]) == (0, "stopped", 3)
    assert found.out.split() == ["0", "finally", "1", "finally"], "the first is the child's"
    assert found.err.count("Traceback") == 1, "of the child, which is not watched"
    assert found.err.endswith("ValueError: in the child\n"), "GitHub is told of problems only"


@pytest.mark.slow
def test_ranks_started_by_torchrun(tmp_path: Path) -> None:
    (tmp_path / "ranks.py").write_text(RANKS)
    launcher = ["torch.distributed.run", "--nproc-per-node=2", "--master-addr=127.0.0.1"]
    launcher += ["--standalone", "-m", "gradwright"]
    command = [sys.executable, "-m", *launcher, "doctor", "--json", "r.json", "ranks.py"]

    found = run(command, tmp_path)

    assert found.err.count("error[GW101]") == 1
    assert "gradwright: rank 1\nerror[GW101]" in found.err
    second = json.loads((tmp_path / "r.rank1.json").read_text())
    assert [each["code"] for each in second["diagnostics"]] == ["GW101"]


# -- the words of the command line ----------------------------------------------------------------


def test_help_says_it_all(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ending:
        main(["doctor", "--help"])
    text = capsys.readouterr().out

    assert ending.value.code == 0
    assert main(["--help"]) == 0 and capsys.readouterr().out == text
    assert main([]) == 2 and capsys.readouterr().err == text
    options = set(re.findall(r"^  (--\w+)", text, re.MULTILINE))
    assert options == {"--steps", "--ignore", "--format", "--json", "--strict", "--fix", "--force"}
    assert text.endswith("2 the script failed for another reason\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("train.py", "expected doctor, explain or rules, found 'train.py'."),
        ("doctor", "doctor needs a script"),
        ("doctor -m", "doctor needs a script"),
        ("doctor --steps 0 x.py", "expected a number of steps from 1, found '0'"),
        ("doctor --steps x.py", "expected a number of steps from 1, found 'x.py'"),
        ("doctor --ignore GW1,E501 x.py", "found E501"),
        ("doctor --ignore , x.py", "found nothing"),
        ("doctor --format xml x.py", "invalid choice: 'xml'"),
        ("doctor --stri x.py", "unrecognized arguments: --stri"),
        ("doctor --force x.py", "it needs --fix"),
        ("doctor --json", "argument --json: expected one argument"),
        ("doctor --json no/such/folder.json x.py", "No such file or directory"),
        ("explain", "the following arguments are required: code"),
        ("rules now", "unrecognized arguments: now"),
    ],
)
def test_misuse(capsys: pytest.CaptureFixture[str], arguments: str, message: str) -> None:
    try:
        status: object = main(arguments.split())
    except SystemExit as ending:
        status = ending.code
    captured = capsys.readouterr()

    assert (status, captured.out) == (2, "")
    assert captured.err.startswith("gradwright: ")
    assert message in captured.err


@pytest.mark.parametrize(
    ("arguments", "program", "is_module"),
    [
        ("--strict t.py --steps 5 -m x", ["t.py", "--steps", "5", "-m", "x"], False),
        ("t.py -- -h", ["t.py", "--", "-h"], False),
        ("--steps 5 -- -t.py -- a", ["-t.py", "--", "a"], False),
        ("--strict -m pkg --help --json x", ["pkg", "--help", "--json", "x"], True),
        ("-m pkg", ["pkg"], True),
    ],
)
def test_options_end_where_the_program_begins(
    arguments: str, program: list[str], is_module: bool
) -> None:
    options = parse_doctor(arguments.split())

    assert (list(options.program), options.module) == (program, is_module)
    assert options.json is None


def test_options_survive_being_written_out() -> None:
    options = Options(("-x.py", "--fix", "--"), steps=3, ignore=("GW1", "GW203"), strict=True)
    variants = [
        options,
        replace(options, module=True, program=("pkg", "-m", "a b")),
        replace(options, json=Path("a b.json"), format="github", fix=True, force=True),
    ]

    assert [parse_doctor(each.as_arguments()) for each in variants] == variants


def test_help_on_a_terminal_without_such_letters() -> None:
    result = subprocess.run(
        [*GRADWRIGHT, "--help"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )

    assert b"0 nothing found ? 1 problem explained" in result.stdout


# -- statuses and files ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("severities", "raised", "strict", "status"),
    [
        ([], False, True, 0),
        ([], True, False, 2),
        (["error"], True, False, 1),
        (["error"], False, False, 1),
        (["warning"], False, False, 0),
        (["warning"], False, True, 1),
        (["warning"], True, False, 2),
        (["note"], False, True, 0),
        (["note", "warning", "error"], True, False, 1),
    ],
)
def test_exit_status(severities: list[Severity], raised: bool, strict: bool, status: int) -> None:
    found = tuple(
        Diagnostic("GW101", "graph-used-twice", "other", severity, "", "", ())
        for severity in severities
    )
    report = Report("x.py", "finished", None, 0, found)
    end = End(RuntimeError() if raised else None, None)

    assert exit_status(report, end, strict) == status


@pytest.mark.parametrize(("code", "status"), [(None, 0), (0, 0), (4, 4), ("text", 1), (True, 1)])
def test_exit_status_of_the_program_itself(code: str | int | None, status: int) -> None:
    nothing = Report("x.py", "stopped", None, 0, ())

    assert exit_status(nothing, End(SystemExit(code), None), False) == status


def test_files_of_ranks() -> None:
    assert rank_file(Path("a/report.v1.json"), 0) == Path("a/report.v1.json")
    assert rank_file(Path("a/report.v1.json"), 12) == Path("a/report.v1.rank12.json")
    assert rank_file(Path("report"), 1) == Path("report.rank1")


def test_a_report_replaces_a_file_and_never_a_device(tmp_path: Path) -> None:
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("old and longer than nothing")
    link.symlink_to(target)
    report = Report("x.py", "finished", None, 0, ())

    for path in (link, Path(os.devnull)):
        check_writable(path)
        write_json(report, path, tmp_path)

    assert json.loads(target.read_text())["outcome"] == "finished"
    assert link.is_symlink()
    assert not Path(os.devnull).is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.json", "target.json"]


@pytest.mark.parametrize("name", ["", "absent/report.json", "file/report.json"])
def test_a_place_that_cannot_be_written_to(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(OutputError, match="needs a file that can be written"):
        check_writable(tmp_path / name)


def test_the_command_and_the_module_are_the_same() -> None:
    code = "import gradwright.__main__ as m\nimport gradwright.doctor.command.cli as c\n"
    code += "print(m.main is c.main)"

    assert run([sys.executable, "-c", code], Path.cwd()).out == "True\n"
    assert run([*GRADWRIGHT, "--version"], Path.cwd()).out == "gradwright 0.1.0\n"
