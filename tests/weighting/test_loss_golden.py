"""The weights of loss methods against numbers that the official code gives for the same losses.

LibMTL: commit 4336804847ea, its classes called with the losses and, where they ask, the epoch.
"""

import pytest
import torch
from torch import Tensor

from gradwright.engine.weights.bases import LossWeighting
from gradwright.weighting.constant import Constant
from gradwright.weighting.cosmos import COSMOS
from gradwright.weighting.dwa import DWA
from gradwright.weighting.famo import FAMO
from gradwright.weighting.geometric_mean import GeometricMean
from gradwright.weighting.go4align import GO4Align
from gradwright.weighting.igbv1 import IGBv1
from gradwright.weighting.imtll import IMTLL
from gradwright.weighting.ldc_mtl import LDCMTL
from gradwright.weighting.mean import Mean
from gradwright.weighting.nadir_stch import NadirSTCH
from gradwright.weighting.pbi import PBI
from gradwright.weighting.stch import STCH
from gradwright.weighting.sum import Sum
from gradwright.weighting.uw import UW

FIRST = torch.tensor([0.8, 2.5, 0.1], dtype=torch.float64)
SECOND = torch.tensor([0.6, 2.6, 0.05], dtype=torch.float64)
THIRD = torch.tensor([0.5, 2.0, 0.07], dtype=torch.float64)


def assert_near(found: Tensor, expected: list[float], rtol: float = 1e-6) -> None:
    """The tolerance is that of the state, which is kept in float32."""
    wanted = torch.tensor(expected, dtype=found.dtype)
    torch.testing.assert_close(found, wanted, rtol=rtol, atol=1e-8)


def test_uw_is_libmtls() -> None:
    weighting = UW(3, start=-0.5)
    with torch.no_grad():
        weighting.log_variances.copy_(torch.tensor([-0.5, 0.3, 0.0]))

    assert_near(weighting(FIRST), [0.8243606354, 0.3704091103, 0.5])
    assert weighting.log_variances.grad is not None
    assert_near(weighting.log_variances.grad, [-0.1594885083, -0.4260227759, 0.45])


def test_imtll_is_a_step_of_the_formula() -> None:
    weighting = IMTLL(3)
    with torch.no_grad():
        weighting.log_scales.copy_(torch.tensor([0.0, 1.0, -1.0]))

    assert_near(weighting(FIRST), [1.0, 2.7182818285, 0.3678794412])
    assert weighting.log_scales.grad is not None
    assert_near(weighting.log_scales.grad, [-0.2, 5.7957045712, -0.9632120559])


def test_geometric_mean_is_libmtls_gls() -> None:
    assert_near(GeometricMean()(FIRST), [0.2436681449, 0.0779738064, 1.9493451588], rtol=1e-9)


def test_dwa_is_libmtls() -> None:
    weighting = DWA(3, temperature=2.0)
    for losses in (FIRST, SECOND):
        assert_near(weighting(losses), [1.0, 1.0, 1.0])
        weighting.end_epoch()

    assert_near(weighting(THIRD), [0.9873174230, 1.1413780094, 0.8713045676])


def test_nadir_stch_is_libmtls() -> None:
    weighting = NadirSTCH(3, mu=0.5, warm_up=1)
    assert_near(weighting(FIRST), [1.25, 0.4, 10.0])
    weighting.end_epoch()
    assert_near(weighting(FIRST), [1.25, 0.4, 10.0])
    weighting(SECOND)
    weighting.end_epoch()

    assert_near(weighting(THIRD), [1.5333237649, 0.4621783282, 18.6997351592])


def test_famo_is_the_official_one() -> None:
    """Cranial-XIX/FAMO, famo.py with gamma=1e-3."""
    weighting = FAMO(3)
    steps = [
        (FIRST, [0.1072961454, 0.0343347668, 0.8583690878], SECOND),
        (SECOND, [0.0790793857, 0.0182490897, 0.9026715246], THIRD),
        (THIRD, [0.1225486281, 0.0312389452, 0.8462124268], FIRST),
    ]
    for losses, expected, after in steps:
        assert_near(weighting(losses), expected)
        weighting.update(after)

    assert_near(weighting(FIRST), [0.1104161887, 0.0359247439, 0.8536590675])
    assert_near(weighting.logits, [0.0109520548, 0.0275558724, -0.0232142632], rtol=1e-4)


def test_igbv1_is_the_official_one() -> None:
    """YanqiDai/IGB4MTL, ImprovableGapBalancing_v1 with the mean of two losses as its base."""
    weighting = IGBv1(3, base_epoch=0)
    assert_near(weighting(FIRST), [1.25, 0.4, 10.0])
    weighting(SECOND)
    weighting.end_epoch()

    assert_near(weighting(THIRD), [1.8086296341, 0.4849561039, 16.0824710743])


def test_go4align_is_the_official_one() -> None:
    """autumn9999/GO4Align, GO4ALIGN with scikit-learn's k-means in place of its own."""
    weighting = GO4Align(5, n_groups=2, step_size=0.01)
    losses = torch.tensor([0.8, 2.5, 0.1, 0.75, 2.2], dtype=torch.float64)
    assert_near(weighting(losses), [1.0926685371, 1.0926685371, 12.8489184598, *[1.0926685371] * 2])
    losses = torch.tensor([0.6, 2.6, 0.05, 0.5, 1.0], dtype=torch.float64)
    assert_near(weighting(losses), [1.2024775647, 1.2024775647, 19.3944692715, *[1.2024775647] * 2])
    shares = [0.2016162874, 0.1942928047, 0.2041523081, 0.2019189388, 0.1980196610]
    assert_near(weighting.shares, shares)


def test_ldc_mtl_is_the_formula_of_the_official_celeba_experiment() -> None:
    """σ(1) = 0.731…; neighbours differ by 1.243 (second larger) and 1.754 (second larger)."""
    weighting = LDCMTL(3, penalty=0.1)

    sigma = 0.7310585786
    expected = [1 / 3 - 0.1 * sigma, 1 / 3 + 0.2 * sigma, 1 / 3 - 0.1 * sigma]
    assert_near(weighting(FIRST), expected)
    slope = sigma * (1 - sigma)
    assert weighting.scores.grad is not None
    per_loss = [
        slope * loss * (1 / (3 * sigma) + 0.1 * sign)
        for loss, sign in zip(FIRST.tolist(), [-1, 2, -1], strict=True)
    ]
    assert_near(weighting.scores.grad, per_loss)


STATELESS = {
    "Sum": (Sum(), [1.0, 1.0, 1.0]),
    "Mean": (Mean(), [1 / 3, 1 / 3, 1 / 3]),
    "Constant": (Constant([2.0, 0.0, -1.0]), [2.0, 0.0, -1.0]),
    # 0.5 softmax([0.8, 2.5, 0.1])
    "STCH": (
        STCH(mu=0.5, preference=[0.5, 0.5, 0.5]),
        [0.0717305293, 0.3926491440, 0.0356203267],
    ),
    # r - λ (r / (|r| |l|) - cos l / |l|²) with r = (1, 0, 0): cos = 0.8 / 2.6267851 = 0.3045548
    "COSMOS": (COSMOS([1.0, 0.0, 0.0], penalty=2.0), [0.3092344141, 0.2206918805, 0.0088276752]),
    # u = (1, 0, 0), so d2 is the length of the rest, √(2.5² + 0.1²)
    "PBI": (PBI([3.0, 0.0, 0.0], theta=2.0), [1.0, 1.9984019175, 0.0799360767]),
}


@pytest.mark.parametrize("name", STATELESS)
def test_formulas_worked_out_by_hand(name: str) -> None:
    weighting, expected = STATELESS[name]
    assert isinstance(weighting, LossWeighting)
    assert_near(weighting(FIRST), expected)
