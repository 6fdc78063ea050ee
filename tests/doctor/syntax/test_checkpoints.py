from __future__ import annotations

import pytest

from gradwright.doctor.syntax.checkpoints import call_directly, draw_with_torch
from tests.doctor.syntax.sources import call, edited, tree_from

CALLS = [
    ("checkpoint(block, x, use_reentrant=False)", "block(x)"),
    ("checkpoint(self.block, x, mask=m, use_reentrant=True)", "self.block(x, mask=m)"),
    ("checkpoint(a if b else c, x)", "(a if b else c)(x)"),
    ("checkpoint(lambda t: t + 1, x, preserve_rng_state=False)", "(lambda t: t + 1)(x)"),
    ("checkpoint(block, *xs, **options)", "block(*xs, **options)"),
]


@pytest.mark.parametrize(("before", "after"), CALLS)
def test_block_is_called_directly(before: str, after: str) -> None:
    tree = tree_from(f"y = {before}\n")
    assert edited(tree, call_directly(tree, call(tree, before))) == f"y = {after}\n"


def test_starred_block_is_left_alone() -> None:
    tree = tree_from("y = checkpoint(*both)\n")
    assert call_directly(tree, call(tree, "checkpoint(*both)")) is None


def test_draw_uses_the_name_of_torch_in_the_file() -> None:
    tree = tree_from("import random\nimport torch as th\np = random.random() < 0.5\n")
    after = edited(tree, draw_with_torch(tree, call(tree, "random.random()")))
    assert after == "import random\nimport torch as th\np = th.rand(()).item() < 0.5\n"


def test_draw_imports_torch_where_it_is_missing() -> None:
    tree = tree_from("import numpy as np\np = np.random.rand() < 0.5\n")
    after = edited(tree, draw_with_torch(tree, call(tree, "np.random.rand()")))
    assert after == "import numpy as np\nimport torch\np = torch.rand(()).item() < 0.5\n"


@pytest.mark.parametrize("draw", ["random.gauss(0, 1)", "np.random.rand(3)", "chance()"])
def test_other_draws_are_left_alone(draw: str) -> None:
    tree = tree_from(f"import random\nimport numpy as np\np = {draw}\n")
    assert draw_with_torch(tree, call(tree, draw)) is None
