"""Models with more weights than rows: a layer's output has the small gradients."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.engine.models.common import WIDTH, Build, Heads, Losses, Model, of_trunk

WIDE = 20


def rows() -> Tensor:
    """Inputs [row, WIDE], few of them."""
    return torch.randn(3, WIDE)


def linear(*layers: nn.Module, bias: bool = True) -> Model:
    first, last = nn.Linear(WIDE, WIDE, bias=bias), nn.Linear(WIDE, WIDTH)
    return of_trunk(nn.Sequential(first, *layers, last), rows())


def of_function(function: Callable[[Tensor, Tensor], Tensor]) -> Model:
    """`function(x, weight)` [row, WIDE] between two layers."""
    first, weight, last = nn.Linear(WIDE, WIDE), nn.Linear(WIDE, WIDE), nn.Linear(WIDE, WIDTH)
    heads, x = Heads(), rows()

    def losses() -> Losses:
        return heads(last(function(first(x).tanh(), weight.weight)))

    return Model(nn.ModuleList([first, weight, last, heads]), losses)


def scaled_addmm(x: Tensor, weight: Tensor) -> Tensor:
    return torch.addmm(x, x, weight.t(), alpha=3.0, beta=2.0)


def twice(x: Tensor, weight: Tensor) -> Tensor:
    return F.linear(F.linear(x, weight).tanh(), weight)


def transposed_once_used_twice(x: Tensor, weight: Tensor) -> Tensor:
    other = weight.t()
    return x @ other + x.square() @ other


def also_penalised(x: Tensor, weight: Tensor) -> Tensor:
    return F.linear(x, weight) * weight.square().mean()


def weight_changed_in_place_later(x: Tensor, weight: Tensor) -> Tensor:
    made = F.linear(x, weight)
    return made.mul_(2).tanh_()


def node_hook(x: Tensor, weight: Tensor) -> Tensor:
    """The hook belongs to the node, not to its output: Python cannot see it."""
    made = F.linear(x, weight)
    assert made.grad_fn is not None
    made.grad_fn.register_prehook(lambda out: (out[0] * 3,))
    return made


def convolution(layer: Any, *, dims: int = 2, channels_last: bool = False) -> Model:
    x = torch.randn(2, WIDE, *([3] * dims))
    if channels_last:
        layer, x = (part.to(memory_format=torch.channels_last) for part in (layer, x))
    trunk = nn.Sequential(layer, nn.Tanh(), nn.Flatten(), nn.LazyLinear(WIDTH))
    trunk(x)
    return of_trunk(trunk, x)


MODELS: dict[str, Build] = {
    "linear": linear,
    "linear without bias": lambda: linear(bias=False),
    "batch norm": lambda: linear(nn.BatchNorm1d(WIDE), nn.ReLU(inplace=True)),
    "dropout": lambda: linear(nn.Dropout(0.3), nn.Linear(WIDE, WIDE)),
    "three dimensions": lambda: of_function(
        lambda x, weight: F.linear(x.expand(2, 3, WIDE), weight).mean(0)
    ),
    "addmm with factors": lambda: of_function(scaled_addmm),
    "weight used twice": lambda: of_function(twice),
    "transposed weight used twice": lambda: of_function(transposed_once_used_twice),
    "weight in a penalty": lambda: of_function(also_penalised),
    "in-place on the output": lambda: of_function(weight_changed_in_place_later),
    "part of the weight": lambda: of_function(lambda x, weight: F.linear(x[:, 2:], weight[:, 2:])),
    "weight not transposed": lambda: of_function(lambda x, weight: x @ weight),
    "weight on the left": lambda: of_function(lambda x, weight: (weight @ x.t()).t()),
    "convolution": lambda: convolution(nn.Conv2d(WIDE, WIDE, 2, padding=1, stride=2)),
    "convolution, dilated": lambda: convolution(nn.Conv2d(WIDE, WIDE, 2, dilation=2)),
    "convolution, grouped": lambda: convolution(nn.Conv2d(WIDE, WIDE, 3, groups=2)),
    "convolution, transposed": lambda: convolution(nn.ConvTranspose2d(WIDE, WIDE, 1)),
    "convolution, channels last": lambda: convolution(nn.Conv2d(WIDE, WIDE, 2), channels_last=True),
    "convolution in one dimension": lambda: convolution(nn.Conv1d(WIDE, WIDE, 3), dims=1),
    "convolution in three dimensions": lambda: convolution(nn.Conv3d(WIDE, WIDE, 3), dims=3),
    "convolution, reflected": lambda: convolution(
        nn.Conv2d(WIDE, WIDE, 3, padding=1, padding_mode="reflect")
    ),
}
HOOKED: dict[str, Build] = {"node hook": lambda: of_function(node_hook)}
