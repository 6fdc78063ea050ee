"""Methods that read two batches: golden numbers, what they promise, and what they converge to."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from gradwright.engine.weights.bases import CrossGramianWeighting
from gradwright.weighting.modo import MoDo
from gradwright.weighting.sdmgrad import SDMGrad

METHODS: dict[str, Callable[[int], CrossGramianWeighting]] = {"MoDo": MoDo, "SDMGrad": SDMGrad}

J1 = torch.tensor([[3.0, 0.0, 1.0, -2.0], [-1.0, 2.0, 0.5, 1.0], [0.1, 0.1, -0.3, 0.2]])
J2 = torch.tensor([[2.0, 0.5, 1.0, -1.0], [-1.0, 1.0, -0.5, 2.0], [0.2, 0.1, -0.2, 0.1]])
J3 = torch.tensor([[1.0, 0.2, -1.0, -1.0], [-2.0, 1.0, -0.5, 0.3], [0.1, 0.3, -0.2, 0.4]])


def assert_near(found: Tensor, expected: list[float]) -> None:
    torch.testing.assert_close(found, torch.tensor(expected), rtol=1e-5, atol=1e-6)


def test_modo_is_the_official_one() -> None:
    """The update of λ in LibMTL (4336804847ea), with the γ and ρ of the official code."""
    weighting = MoDo(3, gamma=0.1, rho=0.1)
    assert_near(weighting(J1 @ J2.T), [0.3362222222, 0.2845555556, 0.3792222222])
    assert_near(weighting(J1 @ J2.T), [0.3037304815, 0.2646177037, 0.4316518148])


def test_sdmgrad_is_the_official_one() -> None:
    """OptMN-Lab/sdmgrad, SDMGrad.sdmgrad with lamda=0.3 and the identity as third batch."""
    weighting = SDMGrad(3)
    assert_near(weighting(J1 @ J2.T), [0.0769230769, 0.0769230769, 0.8461538462])
    assert_near(weighting(J2 @ J3.T), [0.8461538462, 0.0769230769, 0.0769230769])


def test_modo_settles_where_the_regularised_norm_is_least() -> None:
    """With the same J twice, λ minimises λᵀ(JJᵀ + ρ I)λ: inside the simplex its slope is even."""
    G = J1.double() @ J1.double().T + torch.eye(3)
    weighting = MoDo(3, gamma=0.05, rho=0.5)
    for _ in range(3000):
        weights = weighting(G)
    slope = (G + 0.5 * torch.eye(3)) @ weights
    free = weights > 1e-6
    torch.testing.assert_close(
        slope[free], slope[free].min().expand(int(free.sum())), rtol=1e-4, atol=1e-4
    )
    assert bool((slope[~free] >= slope[free].min() - 1e-4).all())


@pytest.mark.parametrize("name", METHODS)
def test_weights_are_on_the_simplex(name: str) -> None:
    weighting = METHODS[name](3)
    for gramian in (J1 @ J2.T, J2 @ J3.T, -(J1 @ J3.T), torch.zeros(3, 3)):
        weights = weighting(gramian)
        assert float(weights.sum()) == pytest.approx(1.0)
        assert bool((weights >= 0).all())


@pytest.mark.parametrize("name", METHODS)
def test_tasks_in_another_order_get_the_same_weights(name: str) -> None:
    order = torch.tensor([2, 0, 1])
    one, other, A = METHODS[name](3), METHODS[name](3), J1 @ J2.T
    for _ in range(2):
        torch.testing.assert_close(other(A[order][:, order]), one(A)[order])


@pytest.mark.parametrize("scale", [1e-40, 1e-20, 1e20, 1e40])
@pytest.mark.parametrize("name", METHODS)
def test_extreme_scales_stay_on_the_simplex(name: str, scale: float) -> None:
    rows = torch.tensor([[1.0], [1e4], [1e-4]]).double()
    A = scale * (rows * J1) @ (rows * J2).T
    weighting = METHODS[name](3)
    for _ in range(3):
        assert float(weighting(A).sum()) == pytest.approx(1.0)


def test_sdmgrad_does_not_depend_on_the_scale() -> None:
    A = (J1 @ J2.T).double()
    torch.testing.assert_close(SDMGrad(3)(A * 2.0**-60), SDMGrad(3)(A))


@pytest.mark.parametrize("name", METHODS)
def test_one_task_has_weight_1(name: str) -> None:
    for value in (4.0, 0.0, -4.0):
        torch.testing.assert_close(METHODS[name](1)(torch.tensor([[value]])), torch.ones(1))


@pytest.mark.parametrize("name", METHODS)
def test_the_type_of_the_input_comes_back(name: str) -> None:
    assert METHODS[name](3)((J1 @ J2.T).double()).dtype == torch.float64
    assert METHODS[name](3)(J1 @ J2.T).dtype == torch.float32


@pytest.mark.parametrize("name", METHODS)
def test_missing_tasks_keep_their_weight_and_the_others_share_the_rest(name: str) -> None:
    three, two = METHODS[name](3), METHODS[name](2)
    A = (J1 @ J2.T)[:2, :2]

    with three.only(torch.tensor([0, 2])):
        for _ in range(3):
            weights = three(A)
            torch.testing.assert_close(weights, two(A))

    kept = three.get_buffer("weights")
    assert float(kept[1]) == pytest.approx(1 / 3)
    assert float(kept.sum()) == pytest.approx(1.0)


@pytest.mark.parametrize("name", METHODS)
def test_a_saved_state_goes_on_to_the_bit(name: str) -> None:
    weighting, fresh = METHODS[name](3), METHODS[name](3)
    weighting(J1 @ J2.T)
    fresh.load_state_dict(copy.deepcopy(weighting.state_dict()))
    assert torch.equal(fresh(J2 @ J3.T), weighting(J2 @ J3.T))


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: MoDo(2, gamma=-1.0), "`gamma` needs to be 0 or more: got -1.0"),
    (lambda: SDMGrad(2, momentum=1.0), "`momentum` needs to be 0 or more and below 1: got 1.0"),
    (lambda: SDMGrad(2, preference=[0.0, 0.0]), "`preference` needs numbers of 0 or more"),
    (lambda: MoDo(2)(torch.ones(2, 3)), r"needs the shape \[task, task\]"),
    (lambda: MoDo(2)(torch.ones(3, 3)), "`MoDo` speaks of 2 tasks, but got 3"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_cannot_work_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
