"""Weights of methods that read a Gramian, against numbers that the official code gives.

nash-mtl: its methods/weight_methods.py and methods/min_norm_solvers.py, with float64 and
`random.shuffle` made to do nothing. FairGrad: its methods/weight_methods.py. LibMTL: commit
4336804847ea, its classes called with the gradients, `torch.symeig` replaced by `torch.linalg.eigh`.
"""

import pytest
import torch
from torch import Tensor

from gradwright.weighting.aligned_mtl import AlignedMTL
from gradwright.weighting.cagrad import CAGrad, Rescale
from gradwright.weighting.fairgrad import FairGrad
from gradwright.weighting.gradnorm import GradNorm
from gradwright.weighting.gradvac import GradVac
from gradwright.weighting.imtlg import IMTLG
from gradwright.weighting.log import Log
from gradwright.weighting.mgda import MGDA, Normalisation
from gradwright.weighting.nash_mtl import NashMTL
from gradwright.weighting.pcgrad import PCGrad

J = torch.tensor([[2.0, 0, 1, 0], [-1, 1, 0, 2], [0, -1, 2, 1]], dtype=torch.float64)
LOSSES = torch.tensor([0.5, 2.0, 1.0], dtype=torch.float64)
G = J @ J.T


def assert_near(found: Tensor, expected: list[float], rtol: float = 1e-8) -> None:
    wanted = torch.tensor(expected, dtype=found.dtype)
    torch.testing.assert_close(found, wanted, rtol=rtol, atol=1e-9)


@pytest.fixture
def in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks are visited in their order."""
    monkeypatch.setattr(torch, "randperm", torch.arange)


@pytest.mark.usefixtures("in_order")
def test_pcgrad_is_nash_mtls() -> None:
    assert_near(PCGrad()(G) @ J, [1.4666666667, 0.3333333333, 3.4, 3.6666666667])


@pytest.mark.usefixtures("in_order")
def test_gradvac_is_libmtls() -> None:
    """Up to the 1e-8 that LibMTL adds to lengths."""
    gradvac = GradVac(3)
    steps = [
        (J, [1.4666666636, 0.3333333314, 3.3999999975, 3.6666666627]),
        (J + 1, [4.0, 3.0, 6.0, 6.0]),
        (J, [1.6459317216, 0.7020142449, 3.8001791393, 4.5554758770]),
    ]
    for jacobian, expected in steps:
        assert_near(gradvac(jacobian @ jacobian.T) @ jacobian, expected, rtol=1e-7)
    assert_near(gradvac.targets[2], [0.4179857606, 0.2377371366, 0.0], rtol=1e-7)


@pytest.mark.parametrize(
    ("normalisation", "expected"),
    [
        ("none", [0.5072513972, 0.4492717111, 0.0434768917]),
        ("l2", [0.4617432699, 0.4714528116, 0.0668039184]),
        ("loss", [0.1349013007, 0.8565378730, 0.0085608263]),
        ("loss+", [0.1199371364, 0.8659572014, 0.0141056622]),
    ],
)
def test_mgda_is_libmtls(normalisation: Normalisation, expected: list[float]) -> None:
    """LibMTL stops when its weights change by less than 1e-5."""
    assert_near(MGDA(normalisation)(G, LOSSES), expected, rtol=2e-3)


@pytest.mark.parametrize(
    ("rescale", "expected"),
    [
        (0, [0.6647492020, 0.2573970287, 1.2944064486, 1.5147940573]),
        (1, [0.5317993616, 0.2059176229, 1.0355251589, 1.2118352458]),
        (2, [0.4431661346, 0.1715980191, 0.8629376324, 1.0098627049]),
    ],
)
def test_cagrad_is_nash_mtls(rescale: Rescale, expected: list[float]) -> None:
    """scipy's solver is good to 4 digits; LibMTL gives the same for `rescale=1`."""
    assert_near(CAGrad(0.5, rescale)(G) @ J, expected, rtol=1e-3)


def test_nash_mtl_is_nash_mtls() -> None:
    """Without clipping; its solver is good to 8 digits here."""
    assert_near(NashMTL()(G), [0.4803844617, 0.4664154707, 0.3062873168], rtol=1e-7)


@pytest.mark.parametrize(
    ("alpha", "expected"),
    [
        (0.5, [0.6024034976, 0.5945545029, 0.4663738497]),
        (1.0, [0.4803844614, 0.4664154704, 0.3062873166]),
        (2.0, [0.3923192391, 0.3722967100, 0.1897693345]),
    ],
)
def test_fairgrad_is_fairgrads(alpha: float, expected: list[float]) -> None:
    assert_near(FairGrad(alpha)(G), expected)


def test_aligned_mtl_is_libmtls() -> None:
    """LibMTL sums the rows of the balance matrix: a preference of 1 for each task."""
    assert_near(AlignedMTL([1, 1, 1])(G), [0.7633418923, 0.7243207359, 0.3896356303])


def test_imtlg_is_nash_mtls() -> None:
    assert_near(IMTLG()(G), [0.4844616946, 0.4515538305, 0.0639844749])


def test_gradnorm_learns_from_libmtls_gradient() -> None:
    """LibMTL's gradient of a, in its second epoch, when the first losses were 1, 2.5 and 1."""
    gradnorm = GradNorm(3)
    gradnorm.first_losses.copy_(torch.tensor([1.0, 2.5, 1.0]))
    gradnorm(G, LOSSES)

    longest = G.diagonal().sqrt().max()  # a common factor, which Adam takes out
    gradient = gradnorm.adam.mean / 0.1 * longest
    assert_near(gradient.double(), [3.1237051469, -1.5618525734, -1.5618525734], rtol=1e-5)


def test_cagrad_on_logs_is_fairgrads() -> None:
    """The official update is for the sum of three losses."""
    expected = [1.8690506603, 0.5309493397, 3.2, 3.4618986795]
    assert_near(3 * Log(CAGrad(0.5))(G, LOSSES) @ J, expected, rtol=1e-3)


def test_imtlg_on_logs_is_fairgrads() -> None:
    """The official weights are for the logarithms, to which it adds 1e-8."""
    weights = Log(IMTLG())(G, LOSSES) * LOSSES
    assert_near(weights, [0.2003028583, 0.7467878066, 0.0529093351], rtol=1e-6)
