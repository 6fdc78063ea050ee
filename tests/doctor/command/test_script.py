"""A program run by the doctor sees what it sees when Python runs it.

Most programs here do without torch: then gradwright does not load it either, and they are quick.
"""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.doctor.commands import GRADWRIGHT, doctor, plain

SURROUNDINGS = """
import os, pickle, sys, torch_free
print(sorted(globals()), __name__, __file__, __spec__ and __spec__.name, __package__)
print(__builtins__, type(__loader__).__name__, __annotations__)
print(sys.argv, sys.path, os.getcwd(), sys.flags, sys.modules["__main__"].__dict__ is globals())
print(sys._getframe().f_code.co_filename, "torch" in sys.modules)

class Saved: pass
print(type(pickle.loads(pickle.dumps(Saved()))) is Saved)
"""
WORKERS = """
import multiprocessing, sys
class Answer:
    def __init__(self, value): self.value = value
def work(question):
    return Answer(question + 1), sys.gettrace() is None
if __name__ == "__main__":
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            answer, untraced = pool.apply(work, [1])
            print(method, isinstance(answer, Answer), answer.value, untraced)
"""
ENDINGS = {
    "falls off the end": "",
    "exit none": "sys.exit()",
    "exit code": "sys.exit(3)",
    "exit message": "sys.exit('the message')",
    "exit object": "sys.exit([1])",
    "os exit": "os._exit(5)",
    "terminated": "os.kill(os.getpid(), signal.SIGTERM)",
    "interrupted": "os.kill(os.getpid(), signal.SIGINT)",
}
FAILURES = {
    "raise": "def inner():\n    raise ValueError('\\x1b[1m \\udc80 ✓')\ninner()",
    "chain": "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise KeyError from error",
    "context": "try:\n    1 / 0\nfinally:\n    {}[0]",
    "group": "raise ExceptionGroup('both', [ValueError(1), TypeError(2)])",
    "hook": "sys.excepthook = lambda kind, error, trace: print('mine', kind, trace.tb_lineno)\n1/0",
    "broken hook": "def hook(*_):\n    [][1]\nsys.excepthook = hook\n1/0",
    "not an Exception": "class Odd(BaseException): pass\nraise Odd('x')",
    "no message": "class Odd(Exception):\n    def __str__(self): return 1\nraise Odd('x')",
    "syntax of an import": "import unparsable",
    "own modules": "import failing",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with programs."""
    folder = tmp_path_factory.mktemp("pröjekt 1")
    (folder / "torch_free.py").touch()
    (folder / "unparsable.py").write_text("def f(:\n")
    (folder / "failing.py").write_text("def fail():\n    1/0\nfail()\n")
    (folder / "see.py").write_text(SURROUNDINGS)
    (folder / "workers.py").write_text(WORKERS)
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").write_text("print('the parent is imported')\n")
    (package / "__main__.py").write_text(SURROUNDINGS)
    (package / "see.py").write_text(SURROUNDINGS)
    (package / "unparsable.py").write_text("def f(:\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "link.py").symlink_to("../see.py")
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ["see.py", "a", "--steps", "5", "--", "-m"],
        ["sub/link.py"],
        ["-m", "package.see", "--json", "x"],
        ["-m", "package", "-h"],
        ["-m", "see"],
    ],
    ids=" ".join,
)
def test_the_program_sees_what_it_sees_in_plain_python(folder: Path, arguments: list[str]) -> None:
    expected = plain(folder, *arguments)

    assert expected.status == 0, expected.err
    assert doctor(folder, *arguments).out == expected.out


def test_worker_processes_find_the_classes_of_main(folder: Path) -> None:
    expected = plain(folder, "workers.py")

    assert "spawn True 2 True" in expected.out
    assert doctor(folder, "workers.py").out == expected.out


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS.keys())
def test_a_program_ends_as_in_plain_python(tmp_path: Path, ending: str) -> None:
    lines = ["import atexit, os, signal, sys", "atexit.register(print, 'at exit')", ending]
    (tmp_path / "end.py").write_text("\n".join(lines))

    expected, found = plain(tmp_path, "end.py"), doctor(tmp_path, "end.py")

    assert (found.status, found.out) == (expected.status, expected.out)
    assert found.err.startswith(expected.err)


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
def test_the_traceback_is_that_of_plain_python(tmp_path: Path, folder: Path, failure: str) -> None:
    lines = ["import sys", f"sys.path.append({str(folder)!r})", failure]
    (tmp_path / "fail.py").write_text("\n".join(lines), encoding="utf-8")

    expected, found = plain(tmp_path, "fail.py"), doctor(tmp_path, "fail.py")

    assert expected.status == 1
    assert found.status == 2
    assert found.out == expected.out
    assert found.err.startswith(expected.err)
    assert found.err[len(expected.err) :].count("\n") == 2, "a gap and one line of ours"


def test_ctrl_c_reaches_finally_and_the_report(tmp_path: Path) -> None:
    lines = ["import time", "try:", "    print('ready', flush=True)", "    time.sleep(60)"]
    lines += ["finally:", "    print('finally')"]
    (tmp_path / "sleep.py").write_text("\n".join(lines))
    command = [*GRADWRIGHT, "doctor", "--json", "report.json", "sleep.py"]

    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # what runs in the background of a shell starts with the signal ignored
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)

    assert process.returncode == -signal.SIGINT
    assert out == "finally\n"
    assert err.count("KeyboardInterrupt") == 1
    assert "gradwright/doctor" not in err
    assert '"outcome": "stopped"' in (tmp_path / "report.json").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.py"], "cannot read 'missing.py': No such file or directory"),
        (["sub"], "cannot read 'sub': Is a directory"),
        (["unparsable.py"], "SyntaxError: invalid syntax"),
        (["-m", "nowhere"], "no module named 'nowhere'"),
        (["-m", "nowhere.to.be"], "no module named 'nowhere.to.be'"),
        (["-m", "package.nowhere"], "no module named 'package.nowhere'"),
        (["-m", "package.unparsable"], "SyntaxError: invalid syntax"),
        (["-m", ".see"], "expected an absolute module name, found '.see'"),
        (["-m", "math"], "the module 'math' has no code to run"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_program_that_cannot_start(folder: Path, arguments: list[str], message: str) -> None:
    found = doctor(folder, *arguments)

    assert found.status == 2
    assert message in found.err
    assert "Traceback" not in found.err
    assert found.report is None
    assert not list(folder.glob(".report*"))


def test_a_parent_package_that_fails_is_a_failure_of_the_program(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("import absent_dependency\n")
    (package / "run.py").touch()

    found = doctor(tmp_path, "-m", "package.run")

    assert found.status == 2
    assert found.report is not None and found.report["exception"]["type"] == "ModuleNotFoundError"
    assert found.report["exception"]["file"] == os.path.join("package", "__init__.py")
    assert "gradwright/doctor" not in found.err


def test_torch_is_not_loaded_before_the_program_wants_it(tmp_path: Path) -> None:
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("import os\nprint(os.environ['OMP_NUM_THREADS'])\n")
    lines = ["import os, sys", "os.environ['OMP_NUM_THREADS'] = '7'", "import torch"]
    lines += ["print(type(torch.__loader__).__name__, vars(torch.__loader__), len(sys.meta_path))"]
    (tmp_path / "late.py").write_text("\n".join(lines))

    expected, found = plain(tmp_path, "late.py"), doctor(tmp_path, "late.py")

    assert expected.out.startswith("7\n")
    assert (found.status, found.out) == (0, expected.out)
    assert "cannot watch; the program goes on" in found.err, "this torch is not one"
    assert "no verdict" in found.err


def test_python_options_of_the_command_hold(folder: Path) -> None:
    command = [sys.executable, "-P", "-B", "-X", "utf8", "-m", "gradwright", "doctor", "see.py"]

    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    assert result.returncode == 2
    assert "No module named 'torch_free'" in result.stderr, "-P keeps the folder off the path"
