"""What the loss methods promise, one test per property, over the methods that promise it."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gradwright.weighting.famo import FAMO
from tests.weighting.loss_methods import METHODS, train

LOSSES = st.lists(st.floats(0.01, 100.0), min_size=1, max_size=6)


def named(**claims: object) -> list[str]:
    """Names of the methods whose fields are as given."""
    return [
        name
        for name, method in METHODS.items()
        if all(getattr(method, field) == value for field, value in claims.items())
    ]


@pytest.mark.parametrize("name", [n for n in METHODS if METHODS[n].total is not None])
@given(losses=LOSSES)
@settings(max_examples=20)
def test_weights_sum_to_what_the_docstring_says(name: str, losses: list[float]) -> None:
    total = METHODS[name].total
    assert total is not None
    weights = METHODS[name].make(len(losses))(torch.tensor(losses, dtype=torch.float64))
    assert float(weights.sum()) == pytest.approx(total(len(losses)), rel=1e-6)


@pytest.mark.parametrize("name", named(signed=False))
@given(losses=LOSSES)
@settings(max_examples=20)
def test_weights_are_not_negative(name: str, losses: list[float]) -> None:
    weights = METHODS[name].make(len(losses))(torch.tensor(losses))
    assert bool((weights >= 0).all())


@pytest.mark.parametrize("name", named(ordered=False))
@given(losses=LOSSES, seed=st.integers(0, 99))
@settings(max_examples=20)
def test_tasks_in_another_order_get_the_same_weights(
    name: str, losses: list[float], seed: int
) -> None:
    values = torch.tensor(losses, dtype=torch.float64)
    order = torch.randperm(len(losses), generator=torch.Generator().manual_seed(seed))
    make = METHODS[name].make

    weights = make(len(losses))(values)

    torch.testing.assert_close(make(len(losses))(values[order]), weights[order])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", METHODS)
def test_weights_have_the_type_of_the_losses(name: str, dtype: torch.dtype) -> None:
    weights = METHODS[name].make(3)(torch.tensor([0.5, 2.0, 1.0], dtype=dtype))
    assert weights.dtype == dtype
    assert not weights.requires_grad


@pytest.mark.parametrize("scale", [1e-20, 1e20])
@pytest.mark.parametrize("name", METHODS)
def test_tiny_and_huge_losses_give_finite_weights(name: str, scale: float) -> None:
    losses = torch.tensor([1.0, 1e4, 3.0], dtype=torch.float64) * scale
    weighting = METHODS[name].make(3)
    assert bool(weighting(losses).isfinite().all())
    assert bool(train(weighting, [losses.tolist()] * 3).isfinite().all())


@pytest.mark.parametrize("loss", [0.0, -1.0])
@pytest.mark.parametrize("name", named(logs=False))
def test_losses_of_zero_and_below_give_finite_weights(name: str, loss: float) -> None:
    assert bool(METHODS[name].make(2)(torch.tensor([loss, loss])).isfinite().all())


@pytest.mark.parametrize("name", named(logs=True))
def test_logarithms_name_the_task_whose_loss_is_not_positive(name: str) -> None:
    weighting = METHODS[name].make(3)
    with pytest.raises(ValueError, match=r"needs losses above .*: the loss of task 1 is -2"):
        weighting(torch.tensor([1.0, -2.0, 1.0]))


@pytest.mark.parametrize("name", named(logs=True))
def test_logarithms_name_the_task_by_its_position_among_all(name: str) -> None:
    weighting = METHODS[name].make(3)
    with (
        weighting.only(torch.tensor([0, 2])),
        pytest.raises(ValueError, match=r"the loss of task 2 is -2"),
    ):
        weighting(torch.tensor([1.0, -2.0]))


@pytest.mark.parametrize("name", METHODS)
def test_one_task(name: str) -> None:
    weights = train(METHODS[name].make(1), [[0.5]] * 3)
    assert weights.shape == (1,)
    assert float(weights) > 0


@pytest.mark.parametrize("name", named(per_task=True))
def test_the_number_of_losses_must_fit(name: str) -> None:
    with pytest.raises(ValueError, match=f"`{name}` speaks of 3 tasks, but got 2 losses"):
        METHODS[name].make(3)(torch.tensor([1.0, 1.0]))


@pytest.mark.parametrize("name", named(ordered=False))
def test_a_missing_task_leaves_the_weights_of_the_same_tasks_alone(name: str) -> None:
    """Steps of tasks 0 and 2 out of three weight them as a method made for two tasks does."""
    three, two = METHODS[name].make(3), METHODS[name].make(2)
    steps = [[0.5, 2.0], [0.4, 2.5], [0.3, 2.0], [0.6, 1.0]]

    with three.only(torch.tensor([0, 2])):
        weights = train(three, steps)

    torch.testing.assert_close(weights, train(two, steps))


@pytest.mark.parametrize("name", METHODS)
def test_missing_tasks_keep_their_state(name: str) -> None:
    weighting = METHODS[name].make(3)
    train(weighting, [[0.5, 2.0, 1.0], [0.4, 2.5, 1.0]])
    before = {key: value.clone() for key, value in weighting.state_dict().items()}

    with weighting.only(torch.tensor([0, 2])):
        weighting(torch.tensor([0.5, 3.0]))
        if isinstance(weighting, FAMO):
            weighting.update(torch.tensor([0.5, 2.0]))

    for key, value in weighting.state_dict().items():
        if value.dim() == 1:
            assert torch.equal(value[1], before[key][1]) or before[key][1].isnan(), key


@pytest.mark.parametrize("name", METHODS)
def test_a_saved_state_goes_on_to_the_bit(name: str) -> None:
    steps = [[0.5, 2.0, 1.0], [0.4, 2.5, 1.1], [0.3, 2.0, 0.9]]
    weighting, fresh = METHODS[name].make(3), METHODS[name].make(3)
    train(weighting, steps)

    fresh.load_state_dict(copy.deepcopy(weighting.state_dict()))
    found = []
    for each in (weighting, fresh):
        torch.manual_seed(0)
        found.append(train(each, [[0.7, 1.0, 2.0], [0.2, 0.9, 2.2]]))

    assert torch.equal(found[0], found[1])
    for key, value in weighting.state_dict().items():
        torch.testing.assert_close(fresh.state_dict()[key], value, rtol=0, atol=0, equal_nan=True)


def test_famo_follows_torchs_adam() -> None:
    weighting = FAMO(3, lr=0.1, weight_decay=0.01)
    twin = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([twin], lr=0.1, weight_decay=0.01)
    generator = torch.Generator().manual_seed(0)
    for _ in range(30):
        before, after = torch.rand(2, 3, generator=generator, dtype=torch.float64) + 0.1
        weighting(before)
        weighting.update(after)
        adam.zero_grad()
        delta = (before + 1e-8).log() - (after + 1e-8).log()
        (torch.softmax(twin, 0) * delta).sum().backward()
        adam.step()

    torch.testing.assert_close(weighting.logits, twin.detach().float(), rtol=1e-4, atol=1e-5)


def test_famo_asks_for_a_step_before_an_update() -> None:
    with pytest.raises(ValueError, match=r"call `FAMO` on losses first"):
        FAMO(2).update(torch.ones(2))
