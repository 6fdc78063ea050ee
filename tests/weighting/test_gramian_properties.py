"""Every method that reads a Gramian keeps what it claims, on Gramians of all kinds."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gradwright.engine.weights.bases import Weighting
from tests.weighting.gramian_methods import METHODS, claiming
from tests.weighting.properties import (
    assert_agrees_with_all,
    assert_finite,
    assert_on_simplex,
    assert_permutes,
    assert_resumes,
    assert_scales,
    assert_speaks_of_present,
    assert_stays_where_stationary,
    assert_unit_free,
    gramian_of,
    independent_jacobians,
    jacobians,
    weigh,
)

few = settings(max_examples=25)


def enough(name: str, jacobian: Tensor) -> Tensor:
    """The Gramian, of more tasks where the method needs them."""
    missing = max(METHODS[name].fewest - len(jacobian), 0)
    shape = (missing, jacobian.shape[1])
    more = torch.arange(1, missing * jacobian.shape[1] + 1).sin().reshape(shape)
    return gramian_of(torch.cat([jacobian, more.to(jacobian)]))


@pytest.mark.parametrize("name", METHODS)
@few
@given(jacobian=jacobians(), power=st.sampled_from([-20, -3, 0, 20]))
def test_weights_are_finite(name: str, jacobian: Tensor, power: int) -> None:
    """Zero rows, low rank, lengths 1 to 10,000, all of them 1e-20 or 1e20."""
    assert_finite(METHODS[name].make, enough(name, jacobian * 10.0**power))


@pytest.mark.parametrize("name", METHODS)
@few
@given(jacobian=jacobians(scales=False))
def test_float32_is_enough(name: str, jacobian: Tensor) -> None:
    """Products of thirds are rounded, so that the Gramian may have eigenvalues below 0."""
    rounded = (jacobian / 3).float()
    assert_finite(METHODS[name].make, enough(name, rounded))


@pytest.mark.parametrize("name", [name for name in METHODS if METHODS[name].fewest == 1])
def test_one_task_keeps_its_direction(name: str) -> None:
    weights = weigh(METHODS[name].make(1), torch.tensor([[4.0]]))
    assert (weights > 0).all()


@pytest.mark.parametrize("name", METHODS)
def test_no_gradient_at_all_is_no_error(name: str) -> None:
    assert_finite(METHODS[name].make, torch.zeros(4, 4))


@pytest.mark.parametrize("name", METHODS)
def test_a_gradient_that_is_not_a_number_is_named(name: str) -> None:
    gramian = torch.eye(4)
    gramian[2] = gramian[:, 2] = torch.nan
    with pytest.raises(ValueError, match=r"The gradient of task 2 is not finite"):
        weigh(METHODS[name].make(4), gramian)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("shape", [(3,), (3, 4), (0, 0)], ids=str)
def test_what_is_no_gramian_is_named(name: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"`gramian` needs the shape \[task, task\]"):
        weigh(METHODS[name].make(3), torch.ones(shape))


SYMMETRIC = [name for name in claiming("symmetric") if METHODS[name].continuous]


@pytest.mark.parametrize("name", SYMMETRIC)
@few
@given(jacobian=jacobians(max_tasks=5))
def test_the_order_of_tasks_means_nothing(name: str, jacobian: Tensor) -> None:
    assert_permutes(METHODS[name].make, enough(name, jacobian))


@pytest.mark.parametrize("name", claiming("symmetric"))
@few
@given(jacobian=independent_jacobians(min_tasks=2))
def test_the_order_of_independent_tasks_means_nothing(name: str, jacobian: Tensor) -> None:
    assert_permutes(METHODS[name].make, enough(name, jacobian))


@pytest.mark.parametrize("name", [name for name in METHODS if METHODS[name].degree is not None])
@few
@given(jacobian=independent_jacobians(max_tasks=8))
def test_weights_follow_the_common_length(name: str, jacobian: Tensor) -> None:
    degree = METHODS[name].degree
    assert degree is not None

    def make(n_tasks: int) -> Weighting:
        torch.manual_seed(0)
        return METHODS[name].make(n_tasks)

    assert_scales(make, enough(name, jacobian), degree)


@pytest.mark.parametrize("name", claiming("unit_free"))
@few
@given(jacobian=independent_jacobians(max_tasks=6))
def test_the_direction_is_free_of_units(name: str, jacobian: Tensor) -> None:
    assert_unit_free(METHODS[name].make, jacobian)


@pytest.mark.parametrize("name", claiming("agrees"))
@few
@given(jacobian=jacobians())
def test_no_task_is_disagreed_with(name: str, jacobian: Tensor) -> None:
    assert_agrees_with_all(METHODS[name].make, gramian_of(jacobian))


@pytest.mark.parametrize("name", claiming("agrees") + claiming("agrees_if_independent"))
@few
@given(jacobian=independent_jacobians())
def test_no_independent_task_is_disagreed_with(name: str, jacobian: Tensor) -> None:
    assert_agrees_with_all(METHODS[name].make, gramian_of(jacobian))


@few
@given(jacobian=independent_jacobians(min_tasks=2))
def test_pcd_agrees_with_all_but_the_first(jacobian: Tensor) -> None:
    assert_agrees_with_all(METHODS["PCD"].make, gramian_of(jacobian), slice(1, None))


@pytest.mark.parametrize("name", claiming("simplex"))
@few
@given(jacobian=jacobians())
def test_weights_are_shares(name: str, jacobian: Tensor) -> None:
    assert_on_simplex(METHODS[name].make, enough(name, jacobian))


@pytest.mark.parametrize("name", claiming("stationary"))
@few
@given(jacobian=jacobians(max_tasks=5))
def test_no_update_where_stationary(name: str, jacobian: Tensor) -> None:
    assert_stays_where_stationary(METHODS[name].make, jacobian)


@pytest.mark.parametrize("name", claiming("stateful"))
@few
@given(jacobian=jacobians())
def test_state_is_saved(name: str, jacobian: Tensor) -> None:
    assert_resumes(METHODS[name].make, jacobian)


@pytest.mark.parametrize("name", METHODS)
@few
@given(jacobian=independent_jacobians(min_tasks=9))
def test_tasks_may_be_missing(name: str, jacobian: Tensor) -> None:
    assert_speaks_of_present(METHODS[name].make, jacobian)
