"""On LibMTL's own modules: its outputs and the gradients it finds, where it follows the papers.

Not compared: PLE has no shared gate there; LTB is not in its package on PyPI. Cross-stitch units
are the same for all tasks there, so ours are given equal rows.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradwright.architecture import (
    CGC,
    MTAN,
    Architecture,
    AttentionStage,
    CrossStitch,
    DSelectK,
    MMoE,
    SharedBottom,
)
from gradwright.architecture.selection import binary_codes
from tests.architecture import libmtl
from tests.architecture.models import WIDTH, layer, total

TASKS = ("age", "job", "sex")
SIZE = {"img_size": [3]}


def decoders() -> nn.ModuleDict:
    return nn.ModuleDict({task: nn.Linear(WIDTH, n) for n, task in enumerate(TASKS, 1)})


def take(modules: Iterable[nn.Module]) -> Callable[[], nn.Module]:
    """Makes one after the other of LibMTL's modules."""
    return iter(modules).__next__


def take_gates(modules: Iterable[nn.Module]) -> Callable[[int], nn.Module]:
    rest = iter(modules)
    return lambda n: next(rest)


class SharedFirst(nn.Module):
    """A gate's outputs in our order: LibMTL has those of the shared experts first."""

    def __init__(self, gate: nn.Module, n_shared: int) -> None:
        super().__init__()
        self.gate, self.n_shared = gate, n_shared

    def forward(self, x: Tensor) -> Tensor:
        return self.gate(x).roll(-self.n_shared, dims=1)


def without_softmax(gates: nn.ModuleDict) -> Iterator[nn.Module]:
    return (next(gate.children()) for gate in gates.values())


def hps() -> tuple[Any, Architecture]:
    theirs = libmtl.made("AbsArchitecture", decoders(), layer)
    theirs.encoder = layer()
    return theirs, SharedBottom(theirs.encoder, dict(theirs.decoders))


def mmoe() -> tuple[Any, Architecture]:
    theirs = libmtl.made("MMoE", decoders(), layer, num_experts=[3], **SIZE)
    gates = without_softmax(theirs.gate_specific)
    experts = take(theirs.experts_shared)
    return theirs, MMoE(experts, 3, take_gates(gates), dict(theirs.decoders))


def cgc() -> tuple[Any, Architecture]:
    theirs = libmtl.made("CGC", decoders(), layer, num_experts=[2, 1, 3, 2], **SIZE)
    own = theirs.experts_specific.values()
    gates = [SharedFirst(gate, 2) for gate in without_softmax(theirs.gate_specific)]
    experts = take(chain(theirs.experts_shared, *own))
    n_task = {"age": 1, "job": 3, "sex": 2}
    return theirs, CGC(experts, 2, n_task, take_gates(gates), dict(theirs.decoders))


def dselect_k() -> tuple[Any, Architecture]:
    options = {"num_experts": [5], "num_nonzeros": 2, "kgamma": 1.0}
    theirs = libmtl.made("DSelect_k", decoders(), layer, **options, **SIZE)
    theirs.eval()  # in training its forward calls backward
    # Read from strings: with NumPy 2.4 all digits come out as ones, and no choice is left.
    theirs._binary_codes = binary_codes(5)[None]
    pairs = zip(theirs._z_logits.values(), theirs._w_logits.values(), strict=True)
    gates = take_gates([gate for pair in pairs for gate in pair])
    return theirs, DSelectK(take(theirs.experts_shared), 5, 2, dict(theirs.decoders), gate=gates)


@pytest.mark.parametrize("make", [hps, mmoe, cgc, dselect_k])
def test_outputs_and_gradients_agree(make: Callable[[], tuple[Any, Architecture]]) -> None:
    torch.manual_seed(0)
    theirs, ours = make()
    check_agreement(theirs.double(), ours.double(), torch.randn(6, 3, dtype=torch.float64))


def test_cross_stitch_with_the_same_unit_for_all_tasks_agrees() -> None:
    torch.manual_seed(0)
    of_task = nn.ModuleDict({task: nn.Conv2d(WIDTH, 1, 1) for task in ("depth", "edge")})
    theirs = libmtl.made(
        "Cross_stitch", of_task, lambda: libmtl.Encoder((WIDTH, WIDTH, WIDTH, WIDTH))
    ).double()
    nn.init.normal_(theirs.encoder.cross_unit)

    encoder, tasks = theirs.encoder, list(of_task)
    first = [
        nn.Sequential(encoder.resnet_conv[task], encoder.resnet_layer["0"][n])
        for n, task in enumerate(tasks)
    ]
    last = {
        task: nn.Sequential(encoder.resnet_layer["3"][n], of_task[task])
        for n, task in enumerate(tasks)
    }
    middle = [take(encoder.resnet_layer[name]) for name in ("1", "2")]
    ours = CrossStitch([take(first), *middle], last).double()
    for unit, row in zip(ours.units, encoder.cross_unit, strict=False):
        unit.data = row.detach().expand(2, 2).clone()

    x = torch.randn(2, 3, 8, 8, dtype=torch.float64)
    check_agreement(theirs, ours, x)


def test_mtan_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    code = libmtl.module("MTAN")
    monkeypatch.setattr(  # what it takes for this needs torchvision
        code._transform_resnet_MTAN, "_conv_layer", lambda self, n, m: nn.Conv2d(n, m, 1)
    )
    of_task = nn.ModuleDict({task: nn.Conv2d(512, 1, 1) for task in ("depth", "edge")})
    theirs = libmtl.made("MTAN", of_task, lambda: libmtl.Encoder((64, 128, 256, 512), 512))

    e = theirs.double().encoder
    onward = [*e.encoder_block_att, nn.Identity()]
    for position in (0, 1):  # where the shared network halves the picture afterwards
        onward[position] = nn.Sequential(onward[position], nn.MaxPool2d(2, 2))
    stages = [
        AttentionStage(
            nn.Sequential(e.shared_conv, e.shared_layer["0"][0]) if i == 0 else shared[0],
            shared[1],
            take(e.encoder_att[str(i)]),
            onward[i],
        )
        for i, shared in enumerate(e.shared_layer.values())
    ]
    ours = MTAN(stages, dict(of_task)).double()

    check_agreement(theirs, ours, torch.randn(2, 3, 16, 16, dtype=torch.float64))
    missing = set(ours.shared_parameters()) - set(theirs.get_share_params())
    assert missing == set(e.encoder_block_att.parameters())  # all tasks share them


def check_agreement(theirs: Any, ours: Architecture, x: Tensor) -> None:
    parameters = [p for p in ours.parameters() if any(p is q for q in theirs.parameters())]
    assert parameters

    expected, found = theirs(x), ours(x)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
    gradients = torch.autograd.grad(total(found), parameters)
    twins = torch.autograd.grad(total(expected), parameters)
    torch.testing.assert_close(gradients, twins, rtol=1e-8, atol=1e-10)
