"""Arguments that no loss method can work with are refused by name."""

from collections.abc import Callable

import pytest
import torch

from gradwright.weighting.constant import Constant, LinearScalarization
from gradwright.weighting.cosmos import COSMOS
from gradwright.weighting.dwa import DWA
from gradwright.weighting.famo import FAMO
from gradwright.weighting.geometric_mean import GLS, GeometricMean
from gradwright.weighting.go4align import GO4Align
from gradwright.weighting.pbi import PBI
from gradwright.weighting.random import RLW, Random
from gradwright.weighting.stch import STCH
from gradwright.weighting.sum import EW, Sum
from gradwright.weighting.uw import UW

REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: UW(0), "`n_tasks` needs to be 1 or more: got 0"),
    (lambda: DWA(2, temperature=0.0), "`temperature` needs to be above 0: got 0.0"),
    (lambda: STCH(mu=-1.0), "`mu` needs to be above 0: got -1.0"),
    (lambda: FAMO(2, lr=-1.0), "`lr` needs to be 0 or more: got -1.0"),
    (lambda: GO4Align(2, n_groups=0), "`n_groups` needs to be 1 or more: got 0"),
    (lambda: PBI([1.0, -1.0]), r"`preference` needs numbers of 0 or more, not all 0"),
    (lambda: COSMOS([0.0, 0.0], penalty=1.0), r"`preference` needs numbers of 0 or more"),
    (lambda: Constant([[1.0]]), "`weights` needs one finite number per task"),  # type: ignore[list-item]
    (lambda: Constant([float("nan")]), "`weights` needs one finite number per task"),
    (lambda: STCH(ideal=[]), "`ideal` needs one finite number per task"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_an_argument_is_refused_by_name(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_other_names() -> None:
    assert (EW, RLW, GLS, LinearScalarization) == (Sum, Random, GeometricMean, Constant)


def test_weights_given_as_a_tensor_are_copied() -> None:
    given = torch.tensor([1.0, 2.0])
    weighting = Constant(given)
    given.zero_()
    assert torch.equal(weighting(torch.ones(2)), torch.tensor([1.0, 2.0]))


def test_random_weights_follow_the_global_seed() -> None:
    torch.manual_seed(3)
    first = Random()(torch.ones(4))
    torch.manual_seed(3)
    assert torch.equal(Random()(torch.ones(4)), first)
    assert not torch.equal(Random()(torch.ones(4)), first)
