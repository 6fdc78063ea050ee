from __future__ import annotations

import ast

import pytest

from gradwright.doctor.syntax import (
    insert_decorator,
    remove_decorator,
    rename_context,
    replace_decorator,
    torch_name,
)
from tests.doctor.syntax.sources import edited, tree_from

OLD, NEW = "torch.inference_mode", "torch.no_grad"
RENAMES = [
    (
        "import torch\n@torch.inference_mode()\ndef f(): pass\n",
        "import torch\n@torch.no_grad()\ndef f(): pass\n",
    ),
    (
        "import torch as th\n@th.inference_mode\ndef f(): pass\n",
        "import torch as th\n@th.no_grad\ndef f(): pass\n",
    ),
    (
        "from torch import inference_mode as im, no_grad\nwith a, im(mode=True):  # fast\n    x\n",
        "from torch import inference_mode as im, no_grad\nwith a, no_grad():  # fast\n    x\n",
    ),
    (
        "from torch import inference_mode\nwith inference_mode():\n    x\n",
        "from torch import inference_mode\nimport torch\nwith torch.no_grad():\n    x\n",
    ),
    ("import torch\nwith torch.inference_mode(flag):\n    x\n", None),
    ("import torch\nwith torch.no_grad():\n    x\n", None),
]


@pytest.mark.parametrize(("before", "after"), RENAMES)
def test_rename_context(before: str, after: str | None) -> None:
    tree = tree_from(before)
    where = tree.root.body[-1]
    assert isinstance(where, ast.With | ast.FunctionDef)
    assert edited(tree, rename_context(tree, where, OLD, NEW)) == after


INSERTS = [
    ("import torch\ndef f(): pass\n", "import torch\n@torch.enable_grad()\ndef f(): pass\n"),
    (
        "import torch\n@a\n# note\n@b\ndef f():\n    pass\n",
        "import torch\n@a\n# note\n@b\n@torch.enable_grad()\ndef f():\n    pass\n",
    ),
    ("import torch\nasync def f(): pass\n", None),
    (
        '"""Doc."""\n\ndef f(): pass\n',
        '"""Doc."""\nimport torch\n\n@torch.enable_grad()\ndef f(): pass\n',
    ),
]


@pytest.mark.parametrize(("before", "after"), INSERTS)
def test_insert_decorator(before: str, after: str | None) -> None:
    tree = tree_from(before)
    function = tree.root.body[-1]
    assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    assert edited(tree, insert_decorator(tree, function, "torch.enable_grad()")) == after


def test_replace_and_remove_decorator() -> None:
    tree = tree_from(
        "import torch\nclass A:\n    @b\n    @torch.no_grad()  # why\n    def f(): pass\n"
    )
    kind = tree.root.body[1]
    assert isinstance(kind, ast.ClassDef)
    method = kind.body[0]
    assert isinstance(method, ast.FunctionDef)
    replaced = edited(tree, replace_decorator(tree, method, NEW, "torch.enable_grad()"))
    assert replaced == tree.text.replace("no_grad", "enable_grad")
    removed = edited(tree, remove_decorator(tree, method, NEW))
    assert removed == tree.text.replace("    @torch.no_grad()  # why\n", "")
    assert remove_decorator(tree, method, "torch.jit.script") is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import torch\n", "torch"),
        ("import torch.nn as nn\n", None),
        ("import torch.nn\n", "torch"),
        ("try:\n    import torch as th\nexcept ImportError:\n    pass\n", "th"),
        ("from torch import nn\n", None),
    ],
)
def test_torch_name(text: str, name: str | None) -> None:
    assert torch_name(tree_from(text)) == name


def test_import_goes_above_decorators_and_below_comments() -> None:
    tree = tree_from("#!/usr/bin/env python\n@a\ndef f(): pass\n")
    function = tree.root.body[0]
    assert isinstance(function, ast.FunctionDef)
    assert edited(tree, insert_decorator(tree, function, "torch.enable_grad()")) == (
        "#!/usr/bin/env python\nimport torch\n@a\n@torch.enable_grad()\ndef f(): pass\n"
    )
