"""A watched program prints, learns and leaves behind exactly what it does unwatched.

Each program runs twice, in two processes side by side. The programs are the healthy ones among
the cases, and those in `journal/programs`, each of which was written for a way to disturb torch.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.data import shared

HERE = Path(__file__).parent / "journal"
OWN = {path.stem: path for path in sorted((HERE / "programs").glob("*.py"))}
SLOWER = {"byol-stop-gradient", "moe-unused-experts", "reinforce-episode-buffer"}
Outcome = dict[str, dict[str, object]]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, Outcome]:
    # those that compile come last: from there on a process has compiled functions
    paths = sorted(OWN.values(), key=lambda path: ("transforms", "compiled").count(path.stem))
    paths.sort(key=lambda path: path.stem == "compiled")
    return _both(paths, tmp_path_factory.mktemp("own"))


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, Outcome]:
    paths = sorted(shared("cases/healthy").glob("*/run.py"))
    return _both(
        [path for path in paths if path.parent.name not in SLOWER],
        tmp_path_factory.mktemp("healthy"),
    )


@pytest.mark.parametrize("name", OWN)
def test_own_programs_are_not_disturbed(own: tuple[Outcome, Outcome], name: str) -> None:
    plain, watched = (side[str(OWN[name])] for side in own)

    assert plain["raised"] == ""
    assert bool(watched.pop("operations")) == (name != "compiled")
    assert {**watched, "operations": 0} == plain


def test_healthy_programs_are_not_disturbed(healthy: tuple[Outcome, Outcome]) -> None:
    plain, watched = healthy

    assert plain
    for name, outcome in plain.items():
        assert outcome["learned"], f"{name} makes no step"
        assert watched[name].pop("operations"), f"nothing was recorded of {name}"
        assert {**watched[name], "operations": 0} == outcome, name


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SLOWER))
def test_slower_healthy_programs_are_not_disturbed(name: str, tmp_path: Path) -> None:
    path = shared(f"cases/healthy/{name}/run.py")

    plain, watched = (side[str(path)] for side in _both([path], tmp_path))

    assert watched.pop("operations")
    assert {**watched, "operations": 0} == plain


def _both(programs: list[Path], folder: Path) -> tuple[Outcome, Outcome]:
    """What the programs do plain and watched."""
    running = [_start(mode, programs, folder) for mode in ("plain", "watched")]
    results = []
    for mode, process in zip(("plain", "watched"), running, strict=True):
        said = process.communicate(timeout=300)[1]
        assert process.returncode == 0, said
        results.append(json.loads((folder / f"{mode}.json").read_text(encoding="utf-8")))
    return results[0], results[1]


def _start(mode: str, programs: list[Path], folder: Path) -> subprocess.Popen[str]:
    source = str(Path(__file__).parents[2] / "src")
    path = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH", "")]))
    return subprocess.Popen(
        [
            sys.executable,
            "-W",
            "ignore",
            str(HERE / "outcomes.py"),
            mode,
            str(folder / f"{mode}.json"),
        ]
        + [str(program) for program in programs],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
