"""A doctor with a broken part says so once; the program does not notice."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "journal"
PARTS = [
    "tracer",
    "thread",
    "engine call",
    "engine marks",
    "step hook",
    "step pre-hook",
    "function mode before",
    "function mode after",
    "function names",
    "start",
    "rules",
    "crash",
    "renderer",
]
BODY = """
import torch
weight = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([weight], lr=0.1)
for turn in range(8):
    loss = (weight.exp() * torch.ones(2)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(turn, loss.item().hex())
print(weight.tolist(), torch.rand(1).item() >= 0)
"""
SCRIPTS = {
    "healthy.py": BODY,
    "crash.py": f"{BODY}\nloss.backward()\nprint('never')\n",
    "exits.py": f"{BODY}\nraise SystemExit(5)\n",
}
SAID = re.compile(r"^gradwright: .*broken on purpose.*$", re.MULTILINE)
Visit = dict[str, object]


@pytest.fixture(scope="module")
def visits(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Visit]:
    folder = tmp_path_factory.mktemp("broken")
    for name, text in SCRIPTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    source = str(Path(__file__).parents[2] / "src")
    path = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", HERE / "broken.py", folder / "out.json", *SCRIPTS],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Visit] = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("part", PARTS)
def test_the_program_goes_on(visits: dict[str, Visit], part: str, script: str) -> None:
    whole, broken = visits[f"nothing: {script}"], visits[f"{part}: {script}"]
    only_in_a_crash = part in ("rules", "crash") and script != "crash.py"

    assert broken["printed"] == whole["printed"] != ""
    assert len(SAID.findall(str(broken["said"]))) == (0 if only_in_a_crash else 1)
    assert str(broken["said"]).count("Traceback (most recent call last)") == (script == "crash.py")
    if script == "crash.py":
        assert "backward through the graph a second time" in str(broken["said"])
        assert broken["status"] in (1, 2)
    else:
        assert broken["status"] == whole["status"]


def test_the_whole_doctor_explains_the_crash(visits: dict[str, Visit]) -> None:
    assert visits["nothing: crash.py"]["status"] == 1
    assert "[GW10" in str(visits["nothing: crash.py"]["said"])
