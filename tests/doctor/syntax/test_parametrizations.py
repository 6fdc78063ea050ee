from __future__ import annotations

import pytest

from gradwright.doctor.syntax.parametrizations import use_parametrization
from tests.doctor.syntax.sources import edited, tree_from


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "from torch.nn.utils import weight_norm\n",
            "from torch.nn.utils.parametrizations import weight_norm\n",
        ),
        (
            "from torch import nn\nx = nn.utils.weight_norm(y)\n",
            "from torch import nn\nx = nn.utils.parametrizations.weight_norm(y)\n",
        ),
        ("from torch.nn.utils import clip_grad_norm_, weight_norm\n", None),
        ("from mine import weight_norm\n", None),
    ],
)
def test_use_parametrization(before: str, after: str | None) -> None:
    tree = tree_from(before)
    assert edited(tree, use_parametrization(tree, "weight_norm")) == after
