"""Imports go one way, from integrations at the top down to diagnostic; see tests/layers.py."""

from pathlib import Path

import pytest

from tests.layers import LAYERS, name_clashes, offences

GRADWRIGHT = Path(__file__).resolve().parents[1] / "src" / "gradwright"


def test_gradwright_keeps_the_order() -> None:
    assert list(GRADWRIGHT.rglob("*.py")), "found no source to read"
    assert offences(GRADWRIGHT) == []


def test_no_package_hides_an_exported_name() -> None:
    assert name_clashes(GRADWRIGHT) == set()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A made-up gradwright with one empty package per layer."""
    root = tmp_path / "gradwright"
    for layer in LAYERS:
        (root / layer).mkdir(parents=True, exist_ok=True)
        (root / layer / "__init__.py").touch()
    return root


FORBIDDEN = [
    ("diagnostic/model.py", "import torch", "torch"),
    ("diagnostic/model.py", "from gradwright.graph import walk", "gradwright.graph.walk"),
    ("diagnostic/model.py", "from ..graph.walk import walk", "gradwright.graph.walk.walk"),
    ("diagnostic/model.py", "from .. import graph", "gradwright.graph"),
    ("graph/walk.py", "from ..engine import backward", "gradwright.engine.backward"),
    ("engine/run.py", "def f():\n    import lightning.pytorch as pl", "lightning.pytorch"),
    ("engine/run.py", "from gradwright.weighting import MGDA", "gradwright.weighting.MGDA"),
    ("weighting/mgda.py", "from ..editing import mend", "gradwright.editing.mend"),
    ("doctor/watch.py", "import gradwright.engine", "gradwright.engine"),
    ("doctor/rules/gw101.py", "from ...engine import plan", "gradwright.engine.plan"),
    ("doctor/watch.py", "from gradwright import backward", "gradwright.backward"),
    ("doctor/watch.py", "import gradwright", "gradwright"),
    ("doctor/watch.py", "import importlib\nimportlib.import_module('IPython')", "IPython"),
    ("doctor/watch.py", "__import__('transformers')", "transformers"),
    (
        "architecture/mmoe.py",
        "from gradwright.diagnostic import Span",
        "gradwright.diagnostic.Span",
    ),
    ("__init__.py", "from .integrations import pytest", "gradwright.integrations.pytest"),
    ("__init__.py", "import rich.console", "rich.console"),
]


@pytest.mark.parametrize(("file", "code", "name"), FORBIDDEN, ids=lambda text: text.split("\n")[-1])
def test_a_forbidden_import_is_found(package: Path, file: str, code: str, name: str) -> None:
    (package / file).parent.mkdir(exist_ok=True)
    (package / file).write_text(code)

    (found,) = offences(package)

    assert found.startswith(f"gradwright/{file}:{len(code.splitlines())}: ")
    assert found.endswith(f"may not import {name}")


ALLOWED = [
    ("diagnostic/text.py", "import ast, rich.text\nfrom . import model\nfrom .model import Span"),
    ("graph/walk.py", "import torch\nfrom gradwright.diagnostic import Span"),
    ("engine/run.py", "from ..graph import walk"),
    ("weighting/mgda.py", "from ..engine import jacobian"),
    (
        "doctor/rules/gw101.py",
        "import sys\nfrom ..journal import Journal\nsys.modules.get('lightning')",
    ),
    (
        "integrations/lightning.py",
        "import lightning\nimport gradwright as gw\nfrom ..doctor import x",
    ),
    ("__init__.py", "from gradwright.engine import backward\nfrom .doctor import watch"),
    ("__main__.py", "from gradwright.doctor.command.cli import main"),
    ("doctor/cli.py", "from gradwright import __version__"),
]


@pytest.mark.parametrize(("file", "code"), ALLOWED, ids=[file for file, _ in ALLOWED])
def test_an_allowed_import_is_not_found(package: Path, file: str, code: str) -> None:
    (package / file).parent.mkdir(exist_ok=True)
    (package / file).write_text(code)

    assert offences(package) == []


@pytest.mark.parametrize("file", ["utils/misc.py", "helpers.py"])
def test_a_new_package_needs_a_place(package: Path, file: str) -> None:
    (package / file).parent.mkdir(exist_ok=True)
    (package / file).touch()

    (found,) = offences(package)

    assert "has no place" in found


def test_an_exported_name_that_a_package_has_is_found(package: Path) -> None:
    (package / "__init__.py").write_text("__all__ = ['backward', 'editing', 'watch']")

    assert name_clashes(package) == {"editing"}
