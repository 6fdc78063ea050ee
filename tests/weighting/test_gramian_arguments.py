"""What a method that reads a Gramian is made with, and called with, is checked."""

from collections.abc import Callable

import pytest
import torch

from gradwright.weighting.aligned_mtl import AlignedMTL
from gradwright.weighting.cagrad import CAGrad
from gradwright.weighting.crmogm import CRMOGM
from gradwright.weighting.dualproj import DualProj
from gradwright.weighting.every import Every
from gradwright.weighting.fairgrad import FairGrad
from gradwright.weighting.grad_drop import GradDrop
from gradwright.weighting.gradnorm import GradNorm
from gradwright.weighting.gradvac import GradVac
from gradwright.weighting.krum import Krum
from gradwright.weighting.log import Log
from gradwright.weighting.mgda import MGDA
from gradwright.weighting.nash_mtl import NashMTL
from gradwright.weighting.pcd import PCD
from gradwright.weighting.sum import Sum
from gradwright.weighting.upgrad import UPGrad

WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: MGDA("l1"), "`normalisation` needs to be"),  # type: ignore[arg-type]
    (lambda: CAGrad(-1), "`c` needs to be 0 or more: got -1"),
    (lambda: CAGrad(0.5, 3), "`rescale` needs to be 0, 1 or 2: got 3"),  # type: ignore[arg-type]
    (lambda: NashMTL(max_norm=0), "`max_norm` needs to be above 0: got 0"),
    (lambda: NashMTL(update_every=0), "`update_every` needs to be 1 or more: got 0"),
    (lambda: NashMTL(update_every=5), "so it needs `n_tasks`"),
    (lambda: FairGrad(0), "`alpha` needs to be above 0: got 0"),
    (lambda: FairGrad(float("inf")), "`alpha` needs to be finite: got inf"),
    (lambda: AlignedMTL(scale="mean"), "`scale` needs to be"),  # type: ignore[arg-type]
    (lambda: AlignedMTL([1, -1]), "`preference` needs numbers of 0 or more"),
    (lambda: UPGrad(ridge=-1), "`ridge` needs to be 0 or more"),
    (lambda: Krum(-1), "`n_byzantine` needs to be 0 or more"),
    (lambda: Krum(0, 0), "`n_selected` needs to be 1 or more"),
    (lambda: GradVac(0), "`n_tasks` needs to be 1 or more"),
    (lambda: GradVac(2, beta=2), "`beta` needs to be"),
    (lambda: PCD(3, tau=2), "`tau` needs to be a number from 0 to 1"),
    (lambda: PCD(3, tau=[0.1]), "one number per task but the first, 2: got 1"),
    (lambda: CRMOGM(Sum(), 2, alpha=1.5), "`alpha` needs to be from 0 to 1"),
    (lambda: CRMOGM(Sum(), 2, start=[1.0]), "`CRMOGM.*` speaks of 2 tasks"),
    (lambda: CRMOGM(GradDrop(), 2), "GradDrop gives an update"),
    (lambda: Every(MGDA(), 2, 0), "`steps` needs to be 1 or more: got 0"),
    (lambda: Every(Sum(), 2, 5), "got Sum. What reads the losses alone costs one backward"),
    (lambda: Every(GradDrop(), 2, 5), "got GradDrop. .* gives an update, not weights"),
    (lambda: Every(UPGrad(), 2, 5)(torch.eye(3)), "speaks of 2 tasks, but the Gramian is of 3"),
    (lambda: Log(GradDrop()), "got GradDrop, which reads something else"),
]


@pytest.mark.parametrize(("make", "sentence"), WRONG, ids=[sentence for _, sentence in WRONG])
def test_a_wrong_argument_is_explained(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()


@pytest.mark.parametrize("make", [AlignedMTL, UPGrad, DualProj], ids=lambda make: make.__name__)
def test_preferences_are_counted(make: type[UPGrad]) -> None:
    with pytest.raises(ValueError, match="`preference` has 2 numbers, but there are 3 tasks"):
        make([0.5, 0.5])(torch.eye(3))


@pytest.mark.parametrize("make", [GradVac, PCD, lambda n: NashMTL(n, update_every=2)])
def test_tasks_are_counted(make: Callable[[int], GradVac]) -> None:
    with pytest.raises(ValueError, match="speaks of 2 tasks, but the Gramian is of 3"):
        make(2)(torch.eye(3))


def test_krum_needs_neighbours() -> None:
    with pytest.raises(ValueError, match="needs at least 4 tasks: got 3"):
        Krum(1)(torch.eye(3))


def test_mgda_says_that_it_needs_losses() -> None:
    with pytest.raises(ValueError, match="needs the losses"):
        MGDA("loss")(torch.eye(2))
    with pytest.raises(ValueError, match="above 0: that of task 1 is not"):
        MGDA("loss")(torch.eye(2), torch.tensor([1.0, 0.0]))
    with pytest.raises(ValueError, match=r"one loss per task, the shape \[2\]: got \[3\]"):
        MGDA("loss")(torch.eye(2), torch.ones(3))


def test_losses_are_finite() -> None:
    with pytest.raises(ValueError, match="The loss of tasks 0, 2 is not finite"):
        GradNorm(3)(torch.eye(3), torch.tensor([torch.nan, 1.0, torch.inf]))


def test_gradnorm_needs_losses_of_at_least_zero() -> None:
    with pytest.raises(ValueError, match="that of task 1 is below"):
        GradNorm(2)(torch.eye(2), torch.tensor([1.0, -1.0]))


def test_inner_products_that_overflow_are_named() -> None:
    gramian = torch.eye(3)
    gramian[0, 1] = gramian[1, 0] = torch.inf
    with pytest.raises(ValueError, match="The gradient of tasks 0, 1 is not finite"):
        MGDA()(gramian)
