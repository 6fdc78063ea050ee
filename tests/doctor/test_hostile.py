"""Programs made to trip the doctor: it explains or is silent, and never runs their code."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "journal"

# All of these die in the second backward of a graph, unless they say otherwise.
HEAD = """
import sys
import torch
weight = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([weight], lr=0.1)
print("begun")
"""
TAIL = """
loss = weight.exp().sum()
for turn in range(3):
    loss.backward()
    optimizer.step()
"""
TOUCHY = """
class Touchy:
    def touched(self, *_, **__):
        if armed:
            print("TOUCHED")
            raise RuntimeError("a program's own method ran")
        return 0
    __repr__ = __str__ = __eq__ = __len__ = __bool__ = __iter__ = touched
    __hash__ = None
    __getitem__ = __contains__ = __call__ = touched

    def __getattr__(self, name):
        return self.touched()


class TouchyDict(dict):
    def __iter__(self):
        print("TOUCHED")
        raise RuntimeError("ran")

    __getitem__ = __len__ = keys = values = items = get = __contains__ = __iter__


class TouchyList(list):
    def __iter__(self):
        print("TOUCHED")
        raise RuntimeError("ran")

    __getitem__ = __len__ = __contains__ = __bool__ = __iter__


class TouchyType(type):
    def __instancecheck__(cls, instance):
        print("TOUCHED")
        raise RuntimeError("ran")


class Odd(metaclass=TouchyType):
    pass


armed = False
"""
# `isinstance` reads `__class__`, `vars` reads `__dict__`: both may be the program's own properties.
TWO_FACED = """
class TwoFaced:
    def touched(self):
        print("TOUCHED")
        raise ValueError("a program's own property ran")

    __class__ = property(touched)
    __dict__ = property(touched)


class Posing:
    __class__ = property(lambda self: torch.Tensor)


class Home:
    face, pose = TwoFaced(), Posing()


net = torch.nn.Linear(2, 2)
vars(net).update(face=TwoFaced(), pose=[Posing()])  # torch itself would ask in `net.face = `
home = Home()
home.face, home.many = TwoFaced(), {"a": [TwoFaced(), Posing()]}
face, pose = TwoFaced(), Posing()
faces = [face, pose, (TwoFaced(), Posing())]


def train(face, *faces, **named):
    self, pose, inner = face, Posing(), [faces, named]
"""
ENDINGS = {
    "again": TAIL,
    "in_place": "h = weight.exp()\nloss = (h * h).sum()\nh.add_(1)\nloss.backward()",
    "unrecorded": "with torch.no_grad():\n    loss = (weight * 2).sum()\nloss.backward()",
    "frozen": "net.requires_grad_(False)\nnet(torch.ones(2)).sum().backward()",
    "wide": "net(torch.ones(2, dtype=torch.float64))",
    "integers": "count = torch.ones(2).long()\ncount.requires_grad_()",
    "unused": "torch.autograd.grad(weight.sum(), list(net.parameters()))",
    "no_leaf": "torch.optim.SGD([weight * 2], lr=0.1)",
    "many": "(weight * 2).backward()",
    "leaf": "weight.add_(1)",
}
PROGRAMS: dict[str, str | bytes] = {
    "latin.py": ("# -*- coding: latin-1 -*-\n# caf\xe9" + HEAD + TAIL).encode("latin-1"),
    "no_newline.py": (HEAD + TAIL).rstrip(),
    "carriage_returns.py": (HEAD + TAIL).replace("\n", "\r\n").encode(),
    "tabs_and_wide.py": HEAD + "重み = weight\n" + TAIL.replace("weight", "重み"),
    "executed.py": HEAD + f"exec({TAIL!r})\n",
    "executed_nowhere.py": HEAD + f"exec(compile({TAIL!r}, '/no/such/file.py', 'exec'))\n",
    "executed_in_memory.py": HEAD
    + f"exec(compile({TAIL!r}, '<memory>', 'exec'), dict(globals()))\n",
    "control_names.py": HEAD
    + f"exec(compile({TAIL!r}, 'a\\x1b[31m\\n\\x00b', 'exec'))\n".replace("\\x00", ""),
    "wrong_source.py": HEAD
    + "import linecache\nlinecache.cache[__file__] = (1, None, ['x = (\\n'], __file__)\n"
    + TAIL,
    "source_gone.py": HEAD + "import os\nos.remove(__file__)\n" + TAIL,
    "source_changed.py": HEAD + "open(__file__, 'w').write('(((\\n')\n" + TAIL,
    "long_line.py": HEAD + "text = '" + "x" * 10_000_000 + "'\n" + TAIL,
    "touchy.py": HEAD
    + TOUCHY
    + "touchy, odd, d, li = Touchy(), Odd(), TouchyDict(a=1), TouchyList([1])\n"
    + "many = [Touchy() for _ in range(50)]\nweight.note = Touchy()\narmed = True\n"
    + TAIL,
    "touchy_module.py": HEAD
    + TOUCHY
    + "net = torch.nn.Linear(2, 2)\nnet.touchy, net.more = Touchy(), TouchyDict(a=1)\n"
    + "sys.modules['weird'] = Touchy()\nsys.modules['none'] = None\narmed = True\n"
    + "weight = net.weight\n"
    + TAIL,
    "touchy_frames.py": HEAD
    + TOUCHY
    + "def train(touchy, *more, **named):\n    d = TouchyDict(touchy=touchy)\n"
    + "".join(f"    {line}\n" for line in TAIL.strip().splitlines())
    + "t = Touchy()\nmore = [Touchy()]\narmed = True\ntrain(t, *more, key=t)\n",
    "huge.py": HEAD
    + "big = {i: [i] for i in range(300_000)}\nlong = list(range(1_000_000))\n"
    + "wide = [[torch.ones(1)] for _ in range(20_000)]\n"
    + TAIL,
    "cyclic.py": HEAD
    + "a = []; a.append(a); b = {'a': a}; b['b'] = b; a.append(b)\n"
    + "class Node:\n    pass\nn = Node(); n.n = n; n.a = a; weight.n = n\n"
    + TAIL,
    "deep.py": HEAD + "deep = []\nfor _ in range(100_000):\n    deep = [deep]\n" + TAIL,
    "own_tensor.py": HEAD
    + "class Tensor:\n    def __getattr__(self, name):\n        raise KeyError(name)\n"
    + "class Node(Tensor):\n    pass\nt, Module = Tensor(), Tensor\n"
    + TAIL,
    "no_directory.py": HEAD
    + "import os, tempfile\nd = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d)\n"
    + TAIL,
    "message.py": HEAD
    + "class Bad(RuntimeError):\n    def __str__(self):\n        raise ValueError('no text')\n"
    + "raise Bad()\n",
    "recursion.py": HEAD + "def down(x):\n    return down(x * weight)\ndown(weight)\n",
    "recursion_small.py": HEAD + "sys.setrecursionlimit(120)\n" + TAIL,
    "memory.py": HEAD + "weight.exp().sum().backward()\nraise MemoryError('no more')\n",
    "group.py": HEAD
    + "try:\n"
    + "".join(f"    {line}\n" for line in TAIL.strip().splitlines())
    + "except RuntimeError as error:\n    raise ExceptionGroup('two', [error, ValueError('x')])\n",
    "cause_cycle.py": HEAD
    + "a, b = RuntimeError('first'), RuntimeError('second')\n"
    + "a.__cause__ = b; b.__cause__ = a\nraise a\n",
    "one_line.py": HEAD + "l = weight.exp().sum(); [l.backward() for _ in range(2)]\n",
    "lambdas.py": HEAD
    + "f = lambda x: x.exp().sum(); l = f(weight); (lambda: (l.backward(), l.backward()))()\n",
}
FACES = {
    f"two_faced_{name}.py": HEAD
    + TWO_FACED
    + "".join(f"    {line}\n" for line in ending.strip().splitlines())
    + "\n\ntrain(face, *faces, key=TwoFaced())\n"
    for name, ending in ENDINGS.items()
}
PROGRAMS |= FACES
# Those whose cause lies in plain sight: an explanation is due.
EXPLAINED = (
    *FACES,
    "latin.py", "no_newline.py", "carriage_returns.py", "tabs_and_wide.py", "touchy.py", "huge.py",
    "cyclic.py", "own_tensor.py", "no_directory.py", "long_line.py", "deep.py", "touchy_frames.py",
)  # fmt: skip
Visit = dict[str, object]


@pytest.fixture(scope="module")
def visits(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Visit]:
    folder = tmp_path_factory.mktemp("hostile")
    for name, text in PROGRAMS.items():
        data = text if isinstance(text, bytes) else text.encode("utf-8")
        (folder / name).write_bytes(data)
    done = _python(folder, str(HERE / "visits.py"), str(folder / "out.json"), *PROGRAMS)
    assert done.returncode == 0, done.stderr
    found: dict[str, Visit] = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_doctor_is_not_tripped(visits: dict[str, Visit], name: str) -> None:
    seen = visits[name]
    said = str(seen["said"])

    assert seen["printed"] == "begun\n"
    assert "gradwright: the doctor failed" not in said, said[-1500:]
    assert "cannot show" not in said
    assert seen["status"] in (1, 2)
    assert "Error" in said or "Bad" in said
    assert "\x1b" not in said.replace("\x1b[31m", "", said.count("File"))
    assert len(said) < 60_000


@pytest.mark.parametrize("name", EXPLAINED)
def test_the_cause_is_explained(visits: dict[str, Visit], name: str) -> None:
    assert "\nerror[GW" in str(visits[name]["said"]), visits[name]["said"]
    assert visits[name]["status"] == 1


def test_a_closed_stderr_does_not_change_the_end(tmp_path: Path) -> None:
    text = HEAD + "import os\nsys.stdout.flush()\nsys.stderr.close()\nos.close(2)\n" + TAIL
    (tmp_path / "closed.py").write_text(text, encoding="utf-8")
    done = _python(tmp_path, "-m", "gradwright", "doctor", "closed.py")

    assert done.stdout == "begun\n"
    assert done.returncode in (1, 2)


def _python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    source = str(Path(__file__).parents[2] / "src")
    path = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH", "")]))
    return subprocess.run(
        [sys.executable, "-W", "ignore", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
    )
