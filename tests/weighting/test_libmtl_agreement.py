"""Whole steps: every gradient is the one that LibMTL 1.1.5 leaves, heads included.

Not compared: RLW and GradDrop draw random numbers; PCGrad and GradVac shuffle (with two tasks there
is nothing to shuffle). Where LibMTL differs from the papers, we follow those: GradVac moves its
targets in every step, LibMTL 1.1.5 only where a cosine is below its target, so one step is
compared; MGDA's normalised weights are for the gradients as they are, LibMTL gives them to the
normalised ones.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest
import torch

import gradwright as gw
from gradwright.engine.weights.bases import Weighting
from gradwright.weighting import EW, GLS, IMTLG, MGDA, UW, CAGrad, GradVac, PCGrad
from tests.weighting import libmtl

SEEDS = {"GradVac": [1]}
SEVERAL = [1, 2, 3]  # so that state counts, where there is any


@pytest.fixture(autouse=True)
def float64() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(torch.float32)


Case = tuple[str, dict[str, Any], int, Callable[[int], Weighting], float]

CASES: dict[str, Case] = {
    "EW": ("EW", {}, 3, lambda n: EW(), 1e-12),
    "UW": ("UW", {}, 3, lambda n: UW(n, start=-0.5), 1e-12),
    "GLS": ("GLS", {}, 3, lambda n: GLS(), 1e-12),
    "IMTL": ("IMTL", {}, 4, lambda n: IMTLG(), 1e-8),
    "MGDA": ("MGDA", {"mgda_gn": "none"}, 2, lambda n: MGDA(), 1e-12),
    "PCGrad": ("PCGrad", {}, 2, lambda n: PCGrad(), 1e-12),
    "GradVac": ("GradVac", {"beta": 0.3}, 2, lambda n: GradVac(n, 0.3), 1e-7),
    "CAGrad": ("CAGrad", {"calpha": 0.4, "rescale": 1}, 3, lambda n: CAGrad(0.4, 1), 1e-3),
    "CAGrad-plain": ("CAGrad", {"calpha": 0.5, "rescale": 0}, 3, lambda n: CAGrad(0.5, 0), 1e-3),
}
"""LibMTL's name and options, the number of tasks, ours, and how exact LibMTL's own solver is."""


@pytest.mark.parametrize("route", ["rows", "lean"])
@pytest.mark.parametrize("name", CASES)
def test_steps_leave_the_gradients_that_libmtl_leaves(name: str, route: Any) -> None:
    method, options, n_tasks, make, tolerance = CASES[name]
    ours = libmtl.Tasks(n_tasks)
    theirs = deepcopy(ours)

    weighting, seeds = make(n_tasks), SEEDS.get(name, SEVERAL)
    for seed in seeds:
        ours.zero_grad()
        gw.backward(ours.losses(seed), weighting=weighting, heads="libmtl", route=route)
    libmtl.step(theirs, method, options, seeds)

    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert mine.grad is not None and other.grad is not None
        torch.testing.assert_close(mine.grad, other.grad, rtol=tolerance, atol=tolerance)
