"""Weights that TorchJD gives for the same Gramian, at its own settings."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from gradwright.engine.weights.bases import Weighting
from gradwright.weighting.aligned_mtl import AlignedMTL
from gradwright.weighting.cagrad import CAGrad
from gradwright.weighting.config import ConFIG
from gradwright.weighting.crmogm import CRMOGM
from gradwright.weighting.dualproj import DualProj
from gradwright.weighting.fairgrad import FairGrad
from gradwright.weighting.gradvac import GradVac
from gradwright.weighting.imtlg import IMTLG
from gradwright.weighting.krum import Krum
from gradwright.weighting.mgda import MGDA
from gradwright.weighting.nash_mtl import NashMTL
from gradwright.weighting.pcd import PCD
from gradwright.weighting.pcgrad import PCGrad
from gradwright.weighting.upgrad import UPGrad

pytest.importorskip("torchjd")
from torchjd import aggregation

P = [0.5, 0.3, 0.2, 0.6]


def vector() -> Tensor:
    return torch.tensor(P, dtype=torch.float64)


Pairs = dict[str, tuple[Callable[[], Weighting], Callable[[], Callable[[Tensor], Tensor]]]]

PAIRS: Pairs = {
    "PCGrad": (PCGrad, lambda: aggregation.PCGradWeighting()),
    "GradVac": (lambda: GradVac(4), lambda: aggregation.GradVacWeighting()),
    "AlignedMTL": (AlignedMTL, lambda: aggregation.AlignedMTLWeighting()),
    "AlignedMTL-median": (
        lambda: AlignedMTL(P, "median"),
        lambda: aggregation.AlignedMTLWeighting(vector(), "median"),
    ),
    "AlignedMTL-rmse": (
        lambda: AlignedMTL(scale="rmse"),
        lambda: aggregation.AlignedMTLWeighting(scale_mode="rmse"),
    ),
    "IMTLG": (IMTLG, lambda: aggregation.IMTLGWeighting()),
    "Krum": (lambda: Krum(), lambda: aggregation.KrumWeighting(0)),
    "Krum-multi": (lambda: Krum(0, 2), lambda: aggregation.KrumWeighting(0, 2)),
    "PCD": (lambda: PCD(4), lambda: aggregation.PCDWeighting()),
    "PCD-tau": (lambda: PCD(4, 0.3, 0.5), lambda: aggregation.PCDWeighting(0.3, 0.5)),
    "CRMOGM": (
        lambda: CRMOGM(IMTLG(), 4),
        lambda: aggregation.CRMOGMWeighting(aggregation.IMTLGWeighting()),
    ),
}
"""What needs nothing but torch."""

QUADPROG: Pairs = {
    "UPGrad": (lambda: UPGrad(ridge=1e-4), lambda: aggregation.UPGradWeighting()),
    "UPGrad-preference": (
        lambda: UPGrad(P, 1e-4),
        lambda: aggregation.UPGradWeighting(vector()),
    ),
    "DualProj": (lambda: DualProj(ridge=1e-4), lambda: aggregation.DualProjWeighting()),
}


def jacobians() -> list[Tensor]:
    """Four tasks: some conflict, and with 3 parameters, they depend on each other."""
    generator = torch.Generator().manual_seed(0)
    shapes = [(4, 9), (4, 30), (4, 4), (4, 9)]
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


def assert_agree(ours: Weighting, theirs: Callable[[Tensor], Tensor], rtol: float = 1e-6) -> None:
    for step, jacobian in enumerate(jacobians()):
        gramian = jacobian @ jacobian.T
        torch.manual_seed(step)
        expected = theirs(gramian)
        torch.manual_seed(step)
        torch.testing.assert_close(ours(gramian), expected, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in PAIRS if name != "GradVac"])
def test_weights_agree(name: str) -> None:
    ours, theirs = PAIRS[name]
    assert_agree(ours(), theirs())


def test_mgda_agrees() -> None:
    """Frank-Wolfe steps come near, but slowly."""
    theirs = aggregation.MGDAWeighting(1e-9, 10_000)
    for jacobian in jacobians():
        update = MGDA()(jacobian @ jacobian.T) @ jacobian
        expected = theirs(jacobian @ jacobian.T) @ jacobian
        torch.testing.assert_close(update, expected, rtol=1e-3, atol=1e-3)


def test_gradvac_agrees_in_the_order_of_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """TorchJD draws other orders from the same generator."""
    monkeypatch.setattr(torch, "randperm", torch.arange)
    ours, theirs = PAIRS["GradVac"]
    assert_agree(ours(), theirs())


@pytest.mark.parametrize("name", QUADPROG)
def test_projections_agree(name: str) -> None:
    pytest.importorskip("quadprog")
    pytest.importorskip("qpsolvers")
    ours, theirs = QUADPROG[name]
    assert_agree(ours(), theirs())


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_fairgrad_agrees(alpha: float) -> None:
    pytest.importorskip("scipy")
    assert_agree(FairGrad(alpha), aggregation.FairGradWeighting(alpha))


@pytest.mark.parametrize("preference", [None, P], ids=["equal", "unequal"])
def test_config_agrees(preference: list[float] | None) -> None:
    theirs = aggregation.ConFIG(None if preference is None else vector())
    for jacobian in jacobians():
        update = ConFIG(preference)(jacobian @ jacobian.T) @ jacobian
        torch.testing.assert_close(update, theirs(jacobian), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("c", [0.2, 0.5, 1.5])
def test_cagrad_agrees(c: float) -> None:
    """CLARABEL is good to about 4 digits."""
    pytest.importorskip("cvxpy")
    pytest.importorskip("clarabel")
    theirs = aggregation.CAGradWeighting(c)
    for jacobian in jacobians():
        gramian = jacobian @ jacobian.T
        update = CAGrad(c, rescale=0)(gramian) @ jacobian
        torch.testing.assert_close(update, theirs(gramian) @ jacobian, rtol=1e-3, atol=1e-3)


@pytest.mark.filterwarnings("ignore")  # of cvxpy, about ECOS
def test_nash_mtl_agrees() -> None:
    """TorchJD clips to a length of 1, and its solver starts from the last weights."""
    pytest.importorskip("cvxpy")
    pytest.importorskip("ecos")
    for jacobian in jacobians():
        update = NashMTL(max_norm=1.0)(jacobian @ jacobian.T) @ jacobian
        expected = aggregation.NashMTL(4)(jacobian)
        torch.testing.assert_close(update, expected, rtol=1e-2, atol=1e-2)
