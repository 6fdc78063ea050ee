"""What methods on Gramians claim, as functions; and Gramians of all kinds to try them on."""

from collections.abc import Callable

import torch
from hypothesis import strategies as st
from torch import Tensor

from gradwright.engine.weights.bases import GramianLossWeighting, Weighting

Make = Callable[[int], Weighting]


@st.composite
def jacobians(
    draw: st.DrawFn, min_tasks: int = 1, max_tasks: int = 6, scales: bool = True
) -> Tensor:
    """Small whole numbers, so that zero rows, repeated and opposite ones and low rank are common.

    With `scales`, the rows are then given lengths that may differ by factors of 10,000.
    """
    n_tasks = draw(st.integers(min_tasks, max_tasks))
    n_parameters = draw(st.integers(1, 8))
    entries = st.lists(st.integers(-3, 3), min_size=n_parameters, max_size=n_parameters)
    rows = draw(st.lists(entries, min_size=n_tasks, max_size=n_tasks))
    jacobian = torch.tensor(rows, dtype=torch.float64)
    powers = st.sampled_from([0.0, 1.0, 2.0, 4.0]) if scales else st.just(0.0)
    return jacobian * torch.tensor([[10.0 ** draw(powers)] for _ in rows], dtype=torch.float64)


@st.composite
def independent_jacobians(draw: st.DrawFn, min_tasks: int = 1, max_tasks: int = 10) -> Tensor:
    """Random rows in general position, of lengths that may differ by factors of 10,000."""
    n_tasks = draw(st.integers(min_tasks, max_tasks))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    jacobian = torch.randn(n_tasks, 3 * n_tasks, generator=generator, dtype=torch.float64)
    spread = draw(st.sampled_from([0.0, 1.0, 4.0]))
    return jacobian * 10 ** (spread * torch.rand(n_tasks, 1, generator=generator).double())


def gramian_of(jacobian: Tensor) -> Tensor:
    return jacobian @ jacobian.T


def weigh(method: Weighting, gramian: Tensor) -> Tensor:
    """The weights for this Gramian; where losses are read, all are 1."""
    if isinstance(method, GramianLossWeighting):
        weights = method(gramian, torch.ones(len(gramian), dtype=gramian.dtype))
    else:
        weights = method(gramian)
    assert isinstance(weights, Tensor)
    assert weights.shape == gramian.shape[:1]
    assert weights.dtype == gramian.dtype
    assert not weights.requires_grad
    return weights


def assert_same_update(gramian: Tensor, found: Tensor, expected: Tensor, rtol: float) -> None:
    """The same Jᵀ w: where gradients depend on each other, weights may differ and it does not."""
    change = found - expected
    scale = expected.abs() @ gramian.diagonal().sqrt()
    # squares of rounding are what is left of an equal update
    length = (change @ gramian @ change).clamp(min=0).sqrt()
    rounding = 1e-7 * (change.abs() @ gramian.diagonal().sqrt())
    assert length <= rtol * scale + rounding, f"{found} against {expected}"


def assert_finite(make: Make, gramian: Tensor) -> None:
    assert weigh(make(len(gramian)), gramian).isfinite().all()


def assert_permutes(make: Make, gramian: Tensor) -> None:
    """Tasks in another order have their weights in that order."""
    order = torch.arange(len(gramian)).roll(1)
    weights = weigh(make(len(gramian)), gramian)
    permuted = weigh(make(len(gramian)), gramian[order][:, order])
    assert_same_update(gramian[order][:, order], permuted, weights[order], rtol=1e-5)


def assert_scales(make: Make, gramian: Tensor, degree: float) -> None:
    """Gradients s times as long have weights s to the power `degree` times as large."""
    weights = weigh(make(len(gramian)), gramian)
    for s in (1e-8, 1e4):
        scaled = weigh(make(len(gramian)), s**2 * gramian)
        assert_same_update(gramian, scaled / s**degree, weights, rtol=1e-6)


def assert_unit_free(make: Make, jacobian: Tensor) -> None:
    """The direction of the update does not depend on how long each gradient is."""
    weights = weigh(make(len(jacobian)), gramian_of(jacobian))
    units = torch.tensor([10.0 ** (task % 3 - 1) for task in range(len(jacobian))]).double()
    other = weigh(make(len(jacobian)), gramian_of(jacobian * units[:, None])) * units
    gramian = gramian_of(jacobian)
    assert_same_update(
        gramian, other / _length(gramian, other), weights / _length(gramian, weights), rtol=1e-6
    )


def _length(gramian: Tensor, weights: Tensor) -> Tensor:
    return (weights @ gramian @ weights).clamp(min=1e-300).sqrt()


def assert_agrees_with_all(make: Make, gramian: Tensor, among: slice = slice(None)) -> None:
    """No task's gradient has an inner product below 0 with the update."""
    weights = weigh(make(len(gramian)), gramian)
    lengths = gramian.diagonal().sqrt()
    size = weights.abs() @ lengths
    assert (gramian @ weights >= -1e-8 * size * lengths)[among].all()


def assert_on_simplex(make: Make, gramian: Tensor) -> None:
    weights = weigh(make(len(gramian)), gramian)
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(), torch.ones((), dtype=weights.dtype))


def assert_stays_where_stationary(make: Make, jacobian: Tensor) -> None:
    """There is no update where a mean of the gradients, each with some weight, is 0."""
    closed = torch.cat([jacobian, -jacobian.sum(dim=0, keepdim=True)])
    gramian = gramian_of(closed)
    weights = weigh(make(len(closed)), gramian)
    length = (weights @ gramian @ weights).clamp(min=0).sqrt()
    assert length <= 1e-6 * (weights.abs() @ gramian.diagonal().sqrt())


def assert_resumes(make: Make, jacobian: Tensor) -> None:
    """A method whose state is saved and loaded goes on as if nothing had happened."""
    steps = [gramian_of(jacobian + shift) for shift in (0.0, 1.0, -2.0, 0.5)]
    method, resumed = make(len(jacobian)), make(len(jacobian))
    for gramian in steps[:2]:
        weigh(method, gramian)
    resumed.load_state_dict(method.state_dict())
    for gramian in steps[2:]:
        torch.manual_seed(0)
        expected = weigh(method, gramian)
        torch.manual_seed(0)
        assert torch.equal(weigh(resumed, gramian), expected)


def assert_speaks_of_present(make: Make, jacobian: Tensor) -> None:
    """With tasks missing: as if made for the others; the state of the missing ones stays."""
    tasks = torch.arange(len(jacobian))[::2]
    gramian = gramian_of(jacobian[tasks])
    method, smaller = make(len(jacobian)), make(len(tasks))
    for _ in range(2):
        torch.manual_seed(0)
        with method.only(tasks):
            found = weigh(method, gramian)
        torch.manual_seed(0)
        assert_same_update(gramian, found, weigh(smaller, gramian), rtol=1e-9)
