"""Weights of loss methods, and updates of row methods, that TorchJD gives for the same input."""

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from gradwright.engine.weights.bases import JacobianWeighting, LossWeighting
from gradwright.weighting.constant import Constant
from gradwright.weighting.cosmos import COSMOS
from gradwright.weighting.dwa import DWA
from gradwright.weighting.excess_mtl import ExcessMTL
from gradwright.weighting.famo import FAMO
from gradwright.weighting.geometric_mean import GeometricMean
from gradwright.weighting.grad_drop import GradDrop
from gradwright.weighting.imtll import IMTLL
from gradwright.weighting.mean import Mean
from gradwright.weighting.modo import MoDo
from gradwright.weighting.pbi import PBI
from gradwright.weighting.random import Random
from gradwright.weighting.sdmgrad import SDMGrad
from gradwright.weighting.stch import STCH
from gradwright.weighting.sum import Sum
from gradwright.weighting.trimmed_mean import TrimmedMean
from gradwright.weighting.uw import UW

pytest.importorskip("torchjd")
from torchjd import aggregation, scalarization

R = torch.tensor([0.5, 0.3, 0.2])
Z = torch.tensor([0.01, 0.02, 0.03])
STEPS = [torch.rand(3, generator=torch.Generator().manual_seed(seed)) + 0.1 for seed in range(4)]
MATRICES = [torch.randn(3, 7, generator=torch.Generator().manual_seed(seed)) for seed in range(4)]

LOSS_METHODS: dict[
    str, tuple[Callable[[], LossWeighting], Callable[[], scalarization.Scalarizer]]
] = {
    "Sum": (Sum, lambda: scalarization.Sum()),
    "Mean": (Mean, lambda: scalarization.Mean()),
    "Constant": (lambda: Constant(R), lambda: scalarization.Constant(R)),
    "Random": (Random, lambda: scalarization.Random()),
    "UW": (lambda: UW(3), lambda: scalarization.UW(3)),
    "IMTLL": (lambda: IMTLL(3), lambda: scalarization.IMTLL(3)),
    "GeometricMean": (GeometricMean, lambda: scalarization.GeometricMean()),
    "DWA": (lambda: DWA(3), lambda: scalarization.DWA()),
    "STCH": (lambda: STCH(mu=0.1), lambda: scalarization.STCH(mu=0.1)),
    "STCH, preference": (lambda: STCH(0.1, R, Z), lambda: scalarization.STCH(0.1, R, Z)),
    "FAMO": (lambda: FAMO(3, min_losses=Z), lambda: scalarization.FAMO(3, min_losses=Z)),
    "COSMOS": (lambda: COSMOS(R, penalty=2.0), lambda: scalarization.COSMOS(2.0, R)),
    "PBI": (lambda: PBI(R, 5.0, Z), lambda: scalarization.PBI(5.0, R, Z)),
}


@pytest.mark.parametrize("name", LOSS_METHODS)
def test_weights_are_the_gradient_of_torchjds_scalar(name: str) -> None:
    make, make_theirs = LOSS_METHODS[name]
    ours, theirs = make(), make_theirs()
    for seed, losses in enumerate(STEPS):
        torch.manual_seed(seed)
        weights = ours(losses)
        torch.manual_seed(seed)
        torch.testing.assert_close(weights, _gradient(theirs, losses), rtol=1e-5, atol=1e-6)
        for mine, other in zip(ours.parameters(), theirs.parameters(), strict=False):
            torch.testing.assert_close(mine.grad, other.grad)
            mine.grad = other.grad = None
        _after_step(ours, theirs, losses)


def _gradient(scalarizer: scalarization.Scalarizer, losses: Tensor) -> Tensor:
    values = losses.clone().requires_grad_()
    scalarizer(values).backward()
    assert values.grad is not None
    return values.grad


def _after_step(ours: LossWeighting, theirs: scalarization.Scalarizer, losses: Tensor) -> None:
    if isinstance(ours, FAMO):
        after = losses * torch.tensor([0.9, 1.1, 0.8])
        ours.update(after)
        theirs.update(after)
    if isinstance(ours, DWA):
        ours.end_epoch()
        theirs.step()


Rows = Callable[[Tensor], Tensor]


def _excess_mtl() -> Rows:
    """TorchJD's weights sum to 1, ours to the number of tasks."""
    aggregator = aggregation.ExcessMTL(robust_step_size=0.1, n_warmup_steps=1)
    return lambda matrix: len(matrix) * aggregator(matrix)


ROW_METHODS: dict[str, tuple[Callable[[], JacobianWeighting], Callable[[], Rows]]] = {
    "GradDrop": (GradDrop, lambda: aggregation.GradDrop()),
    "GradDrop, leak": (lambda: GradDrop(leak=R), lambda: aggregation.GradDrop(leak=R)),
    "TrimmedMean": (TrimmedMean, lambda: aggregation.TrimmedMean(1)),
    "ExcessMTL": (lambda: ExcessMTL(3, step_size=0.1), _excess_mtl),
}


@pytest.mark.parametrize("name", ROW_METHODS)
def test_updates_are_torchjds(name: str) -> None:
    make, make_theirs = ROW_METHODS[name]
    ours, theirs = make(), make_theirs()
    for seed, matrix in enumerate(MATRICES):
        torch.manual_seed(seed)
        (update,) = ours([matrix], torch.ones(3))
        torch.manual_seed(seed)
        torch.testing.assert_close(update, theirs(matrix), rtol=1e-4, atol=1e-5)


def test_modo_and_sdmgrad_are_torchjds() -> None:
    pairs = [
        (MoDo(3), aggregation.MoDoWeighting()),
        (SDMGrad(3, preference=R), aggregation.SDMGradWeighting(pref_vector=R)),
    ]
    for ours, theirs in pairs:
        for one, other in pairwise(MATRICES):
            A = one @ other.T
            torch.testing.assert_close(ours(A), theirs(A), rtol=1e-4, atol=1e-5)
