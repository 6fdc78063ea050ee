"""What is particular to one method that reads a Gramian."""

import copy
import pickle

import pytest
import torch
from hypothesis import given
from torch import Tensor

from gradwright.engine.weights.bases import (
    CrossGramianWeighting,
    GramianLossWeighting,
    GramianWeighting,
    LossWeighting,
)
from gradwright.weighting.aligned_mtl import AlignedMTL
from gradwright.weighting.config import ConFIG
from gradwright.weighting.crmogm import CRMOGM
from gradwright.weighting.fairgrad import FairGrad
from gradwright.weighting.gradnorm import GradNorm
from gradwright.weighting.imtlg import IMTLG
from gradwright.weighting.krum import Krum
from gradwright.weighting.log import Log
from gradwright.weighting.mgda import MGDA
from gradwright.weighting.modo import MoDo
from gradwright.weighting.nash_mtl import NashMTL
from gradwright.weighting.pcd import PCD
from gradwright.weighting.pcgrad import PCGrad
from gradwright.weighting.sum import Sum
from gradwright.weighting.upgrad import UPGrad
from gradwright.weighting.uw import UW
from gradwright.weighting.visiting import visiting_orders
from tests.weighting.properties import gramian_of, independent_jacobians, jacobians

G = torch.tensor([[5.0, -2, 2], [-2, 6, 1], [2, 1, 6]], dtype=torch.float64)


@given(jacobian=jacobians(max_tasks=5))
def test_pcgrad_is_its_algorithm_on_the_gradients(jacobian: Tensor) -> None:
    """Algorithm 1 of the paper, word for word."""
    torch.manual_seed(0)
    orders = visiting_orders(len(jacobian))
    projected = jacobian.clone()
    for g, order in zip(projected, orders, strict=True):
        for j in order:
            if g @ jacobian[j] < 0:
                g -= (g @ jacobian[j]) / (jacobian[j] @ jacobian[j]) * jacobian[j]

    torch.manual_seed(0)
    update = PCGrad()(gramian_of(jacobian)) @ jacobian
    scale = float(jacobian.abs().max())
    # where g·gⱼ is 0 up to rounding, either may see a conflict: that changes nothing
    torch.testing.assert_close(update, projected.sum(dim=0), rtol=1e-8, atol=1e-8 * scale + 1e-12)


def test_every_other_task_is_visited_once() -> None:
    for task, order in enumerate(visiting_orders(5)):
        assert sorted([task, *order.tolist()]) == [0, 1, 2, 3, 4]


@given(jacobian=independent_jacobians(max_tasks=6))
def test_nash_mtl_has_length_root_of_tasks(jacobian: Tensor) -> None:
    gramian = gramian_of(jacobian)
    weights = NashMTL()(gramian)
    torch.testing.assert_close(
        weights @ gramian @ weights, torch.tensor(len(gramian)).double(), rtol=1e-9, atol=0
    )


def test_nash_mtl_is_clipped() -> None:
    weights = NashMTL(max_norm=1.0)(G)
    torch.testing.assert_close(weights * 3**0.5, NashMTL()(G))
    torch.testing.assert_close(NashMTL(max_norm=2.0)(G), NashMTL()(G))


def test_nash_mtl_solves_every_second_step() -> None:
    nash = NashMTL(3, update_every=2)
    first, kept, second = (nash(gramian) for gramian in (G, 4 * G, 4 * G))

    assert torch.equal(kept, first)
    torch.testing.assert_close(second, first / 2)


def test_nash_mtl_solves_at_once_for_a_task_it_has_not_seen() -> None:
    nash = NashMTL(3, update_every=100)
    with nash.only(torch.tensor([0, 1])):
        nash(G[:2, :2])
    torch.testing.assert_close(nash(G), NashMTL()(G))


def test_fairgrad_of_one_is_nash_mtl() -> None:
    torch.testing.assert_close(FairGrad(1.0)(G), NashMTL()(G))


@given(jacobian=independent_jacobians(max_tasks=6))
def test_imtlg_projects_equally(jacobian: Tensor) -> None:
    gramian = gramian_of(jacobian)
    projections = gramian @ IMTLG()(gramian) / gramian.diagonal().sqrt()
    torch.testing.assert_close(projections, projections[:1].expand(len(gramian)), rtol=1e-5, atol=0)


@given(jacobian=independent_jacobians(max_tasks=6))
def test_aligned_gradients_are_orthogonal(jacobian: Tensor) -> None:
    """The columns of the balance matrix, one preference each, turn G into a multiple of 1."""
    gramian = gramian_of(jacobian)
    columns = torch.stack([AlignedMTL(row)(gramian) for row in torch.eye(len(gramian))])
    aligned = columns @ gramian @ columns.T
    smallest = torch.linalg.eigvalsh(gramian)[0]
    expected = smallest * torch.eye(len(gramian), dtype=gramian.dtype)
    torch.testing.assert_close(aligned, expected, rtol=1e-4, atol=1e-4 * float(smallest))


@given(jacobian=independent_jacobians(max_tasks=6))
def test_config_has_equal_cosines_and_the_sum_of_projections(jacobian: Tensor) -> None:
    gramian = gramian_of(jacobian)
    weights = ConFIG()(gramian)
    length = (weights @ gramian @ weights).sqrt()
    cosines = gramian @ weights / gramian.diagonal().sqrt() / length

    torch.testing.assert_close(cosines, cosines[:1].expand(len(gramian)), rtol=1e-6, atol=0)
    torch.testing.assert_close(length, (gramian @ weights).sum() / length, rtol=1e-6, atol=0)


@given(jacobian=independent_jacobians(min_tasks=2, max_tasks=6))
def test_upgrad_is_the_mean_of_projections_of_one_task(jacobian: Tensor) -> None:
    gramian = gramian_of(jacobian)
    alone = [UPGrad(row)(gramian) for row in torch.eye(len(gramian))]
    torch.testing.assert_close(
        UPGrad()(gramian), torch.stack(alone).mean(dim=0), rtol=1e-6, atol=1e-12
    )


@given(jacobian=independent_jacobians(min_tasks=2, max_tasks=6))
def test_upgrad_is_linear_in_the_length_of_a_gradient(jacobian: Tensor) -> None:
    """The paper's second property: the update for J' diag(s) is linear in s."""

    def update(scales: Tensor) -> Tensor:
        scaled = jacobian * scales[:, None]
        return UPGrad()(gramian_of(scaled)) @ scaled

    one, two = torch.ones(len(jacobian)).double(), torch.arange(1.0, len(jacobian) + 1).double()
    size = float(jacobian.abs().max())
    torch.testing.assert_close(
        update(one + two), update(one) + update(two), rtol=1e-7, atol=1e-8 * size
    )


def test_krum_leaves_out_the_far_ones() -> None:
    jacobian = torch.tensor([[1.0, 0], [1.1, 0], [0.9, 0.1], [1.0, 0.1], [-50, 0], [0, 80]])
    assert set(Krum(2, 3)(gramian_of(jacobian)).nonzero().flatten().tolist()) < {0, 1, 2, 3}


def test_krum_adds_up_squared_distances() -> None:
    """On a line: 0, 0, 9, 14, 18 have the sums 0 + 81, 0 + 81, 25 + 81, 16 + 25 and 16 + 81."""
    line = torch.tensor([[0.0], [0.0], [9.0], [14.0], [18.0]])
    assert Krum(1)(gramian_of(line)).tolist() == [0, 0, 0, 1, 0]


def test_pcd_lets_each_other_task_progress() -> None:
    pcd = PCD(3, tau=0.25, beta=0.0, eps=0.0)
    weights = pcd(G)
    units = G / G.diagonal().sqrt().outer(G.diagonal().sqrt())
    direction = weights * G.diagonal().sqrt()
    direction = direction / direction[0]

    assert (units @ direction)[1] == pytest.approx(0.25)
    assert (units @ direction)[2] >= 0.25
    torch.testing.assert_close(weights @ G @ weights, G[0, 0])


def test_pcd_drops_constraints_that_exclude_each_other() -> None:
    jacobian = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, -1, 0]])
    torch.testing.assert_close(PCD(3)(gramian_of(jacobian)), torch.tensor([1.0, 0, 0]))


def test_pcd_without_its_first_task_does_nothing() -> None:
    pcd = PCD(3)
    with pcd.only(torch.tensor([1, 2])):
        assert pcd(G[1:, 1:]).tolist() == [0, 0]
    assert pcd.steps.tolist() == [0, 1, 1]


def test_gradnorm_makes_gradients_equally_long() -> None:
    gradnorm = GradNorm(3, lr=0.01)
    gramian = torch.diag(torch.tensor([1.0, 4.0, 16.0]))
    for _ in range(2000):
        weights = gradnorm(gramian, torch.ones(3))
    lengths = weights * gramian.diagonal().sqrt()

    torch.testing.assert_close(weights.sum(), torch.tensor(3.0))
    torch.testing.assert_close(lengths, lengths.mean().expand(3), rtol=0.02, atol=0)


def test_gradnorm_helps_the_slow_task() -> None:
    gradnorm = GradNorm(2, alpha=1.0, lr=0.01)
    gradnorm(torch.eye(2), torch.tensor([1.0, 1.0]))
    for _ in range(1000):
        weights = gradnorm(torch.eye(2), torch.tensor([0.9, 0.3]))
    assert float(weights[0] / weights[1]) == pytest.approx(3, rel=0.02)


def test_gradnorm_takes_the_first_loss_above_zero() -> None:
    gradnorm = GradNorm(2)
    gradnorm(torch.eye(2), torch.tensor([0.0, 2.0]))
    gradnorm(torch.eye(2), torch.tensor([3.0, 1.0]))
    assert gradnorm.first_losses.tolist() == [3, 2]


LOSSES = torch.tensor([0.5, 2.0, 1.0], dtype=torch.float64)


def test_log_of_sum_is_scale_invariant_scalarisation() -> None:
    torch.testing.assert_close(Log(Sum())(LOSSES), 1 / LOSSES)


def test_log_of_a_scalarization_is_its_gradient() -> None:
    losses = LOSSES.clone().requires_grad_()
    UW(3).total(losses.log()).backward()
    torch.testing.assert_close(Log(UW(3))(LOSSES), losses.grad, check_dtype=False)


def test_log_reads_the_gradients_of_logarithms() -> None:
    scaled = G / LOSSES.outer(LOSSES)
    torch.testing.assert_close(Log(MGDA())(G, LOSSES), MGDA()(scaled) / LOSSES)
    torch.testing.assert_close(
        Log(MGDA("loss"))(G, LOSSES * 4), MGDA("loss")(scaled / 16, (LOSSES * 4).log()) / LOSSES / 4
    )


def test_log_names_a_loss_without_logarithm() -> None:
    for method, read in ((Log(Sum()), ()), (Log(IMTLG()), (G,))):
        with pytest.raises(ValueError, match="loss of task 1 is 0"):
            method(*read, torch.tensor([1.0, 0.0, 2.0]))


KINDS = [
    (Sum(), LossWeighting),
    (IMTLG(), GramianWeighting),
    (MGDA(), GramianLossWeighting),
    (MoDo(3), CrossGramianWeighting),
]


@pytest.mark.parametrize(("inner", "kind"), KINDS, ids=["losses", "G", "G, losses", "cross"])
def test_crmogm_reads_what_its_method_reads(inner: GramianWeighting, kind: type) -> None:
    crmogm = CRMOGM(inner, 3)
    assert isinstance(crmogm, CRMOGM) and isinstance(crmogm, kind)
    read: tuple[Tensor, ...] = (LOSSES,) if kind is LossWeighting else (G,)
    if kind is GramianLossWeighting:
        read = (G, LOSSES)
    expected = copy.deepcopy(inner)(*read)
    torch.testing.assert_close(crmogm(*read), expected)


@pytest.mark.parametrize(("inner", "kind"), KINDS[:3], ids=["losses", "G", "G, losses"])
def test_log_is_of_its_methods_kind(inner: GramianWeighting, kind: type) -> None:
    assert isinstance(Log(inner), LossWeighting if kind is LossWeighting else GramianLossWeighting)


@pytest.mark.parametrize("outer", [CRMOGM(MGDA(), 3), Log(Sum()), Log(NashMTL())], ids=repr)
def test_wrapped_methods_can_be_copied(outer: CRMOGM | Log) -> None:
    for twin in (copy.deepcopy(outer), pickle.loads(pickle.dumps(outer))):
        assert type(twin) is type(outer)
        assert twin.paper_heads == outer.weighting.paper_heads == outer.paper_heads


def test_crmogm_averages() -> None:
    crmogm = CRMOGM(IMTLG(), 3, alpha=0.75, start=[1, 0, 0])
    found = [crmogm(G) for _ in range(2)]
    target, first = IMTLG()(G), torch.tensor([1.0, 0, 0]).double()

    torch.testing.assert_close(found[0], 0.75 * first + 0.25 * target)
    torch.testing.assert_close(found[1], 0.75 * found[0] + 0.25 * target)


def test_crmogm_keeps_the_weights_of_missing_tasks() -> None:
    crmogm = CRMOGM(IMTLG(), 3)
    crmogm(G)
    before = crmogm.average.clone()
    with crmogm.only(torch.tensor([0, 2])):
        crmogm(torch.eye(2))

    assert crmogm.average[1] == before[1]
    assert (crmogm.average != before).tolist() == [True, False, True]


def test_the_method_inside_hears_of_missing_tasks() -> None:
    crmogm = CRMOGM(GradNorm(3), 3)
    with crmogm.only(torch.tensor([0, 2])):
        crmogm(torch.eye(2), torch.ones(2))
    assert crmogm.state_dict()["weighting.first_losses"].tolist() == [1, 0, 1]
