"""A BatchNorm in train mode is named, and nothing that only looks like one."""

import warnings
from collections.abc import Callable

import pytest
import torch
from torch import nn

from gradwright.loops import Window
from gradwright.loops.accumulation import BatchNormWarning


def close_windows(
    net: nn.Module, sizes: tuple[int, ...] = (3,), window: Window | None = None
) -> None:
    window = Window(net) if window is None else window
    for size in sizes:
        for _ in range(size):
            x = torch.randn(2, 3, 4, 4, requires_grad=True)
            window.backward(net(x).square().sum(), count=2)
        window.close()


def said(net: nn.Module, sizes: tuple[int, ...] = (3,), window: Window | None = None) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        close_windows(net, sizes, window)
    assert all(issubclass(each.category, BatchNormWarning) for each in found)
    assert all(each.filename == __file__ for each in found)
    return [str(each.message) for each in found]


def after(*layers: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 3, 1), *layers)


def frozen(module: nn.Module) -> nn.Module:
    return module.requires_grad_(False)


NAMED: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "BatchNorm2d": (lambda: after(nn.BatchNorm2d(3)), "'1'"),
    "in a block": (
        lambda: nn.Sequential(nn.Conv2d(3, 3, 1), after(nn.ReLU(), nn.BatchNorm2d(3))),
        "'1.2'",
    ),
    "without weights": (lambda: after(nn.BatchNorm2d(3, affine=False)), "'1'"),
    "with frozen weights": (lambda: after(frozen(nn.BatchNorm2d(3))), "'1'"),
    "without running statistics": (
        lambda: after(nn.BatchNorm2d(3, track_running_stats=False)),
        "'1'",
    ),
    "in eval mode without running statistics": (
        lambda: after(nn.BatchNorm2d(3, track_running_stats=False).eval()),
        "'1'",
    ),
    "nameless": (
        lambda: after(nn.BatchNorm2d(3, affine=False, track_running_stats=False)),
        "one of 3 channels",
    ),
    "BatchNorm1d": (lambda: after(nn.Flatten(), nn.BatchNorm1d(48)), "'2'"),
}


@pytest.mark.parametrize(("make", "name"), NAMED.values(), ids=NAMED.keys())
def test_a_batch_norm_is_named(make: Callable[[], nn.Module], name: str) -> None:
    (message,) = said(make())

    assert message.startswith(f"1 BatchNorm in train mode ({name}): each micro-batch is normalised")
    assert "SyncBatchNorm joins ranks, not micro-batches, and does not help" in message


def test_by_channels_where_only_parameters_were_given() -> None:
    net = after(nn.BatchNorm2d(3))
    (message,) = said(net, window=Window(net.parameters()))

    assert "(one of 3 channels)" in message


def test_several_are_counted() -> None:
    (message,) = said(after(*(nn.BatchNorm2d(3) for _ in range(5))))

    assert message.startswith("5 BatchNorm in train mode ('1', '2', '3' and 2 more)")


UNNAMED: dict[str, Callable[[], nn.Module]] = {
    "eval": lambda: after(nn.BatchNorm2d(3)).eval(),
    "LayerNorm": lambda: after(nn.LayerNorm([3, 4, 4])),
    "GroupNorm": lambda: after(nn.GroupNorm(3, 3)),
    "InstanceNorm": lambda: after(nn.InstanceNorm2d(3)),
    "InstanceNorm, affine": lambda: after(nn.InstanceNorm2d(3, affine=True)),
    "InstanceNorm, tracking": lambda: after(nn.InstanceNorm2d(3, track_running_stats=True)),
    "InstanceNorm, frozen": lambda: after(frozen(nn.InstanceNorm2d(3, affine=True))),
    "InstanceNorm first": lambda: nn.InstanceNorm2d(3, affine=True),
    "not run": lambda: after(NotRun()),
}


class NotRun(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


@pytest.mark.parametrize("make", UNNAMED.values(), ids=UNNAMED.keys())
def test_no_false_alarm(make: Callable[[], nn.Module]) -> None:
    assert said(make()) == []


def test_said_once_and_not_for_single_micro_batches() -> None:
    net = after(nn.BatchNorm2d(3))
    window = Window(net)

    assert said(net, (1, 1), window) == []
    assert len(said(net, (3, 3), window)) == 1
    assert said(net, (3,), window) == []


def test_no_hook_of_others_runs() -> None:
    net, unpacked = after(nn.BatchNorm2d(3)), []

    def unpack(packed: torch.Tensor) -> torch.Tensor:
        unpacked.append(packed)
        return packed

    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        loss = net(torch.randn(2, 3, 4, 4)).square().sum()
    Window(net).backward(loss, count=2, backward=lambda scaled: None)

    assert unpacked == []


@pytest.mark.slow
def test_inside_a_compiled_part() -> None:
    net = after(nn.BatchNorm2d(3))
    compiled = torch.compile(net, backend="aot_eager")
    window = Window(net)
    with pytest.warns(BatchNormWarning, match=r"\('1'\)"):
        for _ in range(2):
            window.backward(compiled(torch.randn(2, 3, 4, 4)).square().sum(), count=2)
