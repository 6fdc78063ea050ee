"""The bases that methods extend."""

import pytest
import torch
from torch import Tensor, nn

from gradwright.engine import GramianLossWeighting, LossWeighting, Scalarization, backward
from tests.engine.methods import InverseNorms
from tests.engine.models.common import Heads, batch, mlp


class Remembering(LossWeighting):
    """Weights 1 / (last loss of this task), which it stores per task."""

    def __init__(self, n_tasks: int) -> None:
        super().__init__()
        self.n_tasks = n_tasks
        self.last: Tensor
        self.register_buffer("last", torch.ones(n_tasks, dtype=torch.float64))

    def forward(self, losses: Tensor) -> Tensor:
        weights = 1 / self.of_present(self.last)
        self.put_present(self.last, losses)
        return weights


class Learned(Scalarization):
    """Σ loss exp(-s) + s, with s learned (Kendall et al., CVPR 2018)."""

    def __init__(self, n_tasks: int) -> None:
        super().__init__()
        self.n_tasks = n_tasks
        self.s = nn.Parameter(torch.linspace(-0.5, 0.5, n_tasks))

    def total(self, losses: Tensor) -> Tensor:
        s = self.of_present(self.s)
        return (losses * (-s).exp() + s).sum()


class NormsAndLosses(GramianLossWeighting):
    """Keeps what it was given."""

    def forward(self, gramian: Tensor, losses: Tensor) -> Tensor:
        self.seen = (gramian, losses)
        return losses / gramian.diagonal().sqrt()


def losses_of(n_tasks: int = 3) -> dict[str, Tensor]:
    torch.manual_seed(0)
    return Heads(n_tasks=n_tasks)(mlp(nn.Tanh())(batch()))


def test_only_picks_the_entries_of_the_tasks_present() -> None:
    weighting = Remembering(3)
    state = torch.tensor([1.0, 2.0, 3.0])
    with weighting.only(torch.tensor([2, 0])):
        assert weighting.of_present(state).tolist() == [3.0, 1.0]
        weighting.put_present(state, torch.tensor([30.0, 10.0]))

    assert state.tolist() == [10.0, 2.0, 30.0]
    assert weighting.of_present(state) is state


def test_only_is_undone_after_an_error_and_nests() -> None:
    weighting, state = Remembering(3), torch.tensor([1.0, 2.0, 3.0])
    with weighting.only(torch.tensor([0, 1])):
        with pytest.raises(ZeroDivisionError), weighting.only(torch.tensor([2])):
            raise ZeroDivisionError
        assert weighting.of_present(state).tolist() == [1.0, 2.0]

    assert weighting.of_present(state).tolist() == [1.0, 2.0, 3.0]


def test_only_lets_gradients_through() -> None:
    weighting = Learned(3)
    with weighting.only(torch.tensor([0, 2])):
        weighting(torch.tensor([1.0, 2.0]))

    assert weighting.s.grad is not None
    assert weighting.s.grad[1] == 0
    assert weighting.s.grad[0] != 0


def test_absent_task_keeps_its_state() -> None:
    weighting, losses = Remembering(3), losses_of()
    result = backward(losses | {"task1": None}, weighting=weighting)

    assert weighting.last[1] == 1
    assert weighting.last[[0, 2]].tolist() == pytest.approx(
        [losses["task0"].item(), losses["task2"].item()]
    )
    assert result.weights is not None
    assert result.weights.tolist() == [1, 0, 1]
    assert result.losses.isnan().tolist() == [False, True, False]


def test_state_travels_with_state_dict() -> None:
    weighting = Remembering(3)
    backward(losses_of(), weighting=weighting)
    restored = Remembering(3)
    restored.load_state_dict(weighting.state_dict())

    first = backward(losses_of(), weighting=weighting).weights
    assert first is not None
    assert not torch.equal(first, torch.ones(3, dtype=torch.float64))
    second = backward(losses_of(), weighting=restored).weights
    assert second is not None
    assert torch.equal(first, second)


def test_state_dict_has_buffers_and_parameters_alone() -> None:
    assert set(Remembering(3).state_dict()) == {"last"}
    assert set(Learned(3).state_dict()) == {"s"}
    assert not InverseNorms().state_dict()


def test_scalarization_is_one_backward_of_its_total() -> None:
    weighting, twin = Learned(3), Learned(3)
    torch.manual_seed(0)
    trunk, heads, x = mlp(nn.Tanh()), Heads(), batch()
    leaves = [*trunk.parameters(), *heads.parameters()]
    result = backward(heads(trunk(x)), weighting=weighting)
    found = [leaf.grad for leaf in leaves]
    for leaf in leaves:
        leaf.grad = None
    twin.total(torch.stack([*heads(trunk(x)).values()])).backward()

    assert result.route.name == "losses"
    torch.testing.assert_close(weighting.s.grad, twin.s.grad)
    for leaf, gradient in zip(leaves, found, strict=True):
        torch.testing.assert_close(gradient, leaf.grad)


def test_scalarization_adds_to_its_own_gradient() -> None:
    weighting = Learned(3)
    backward(losses_of(), weighting=weighting)
    assert weighting.s.grad is not None
    first = weighting.s.grad.clone()
    backward(losses_of(), weighting=weighting)

    torch.testing.assert_close(weighting.s.grad, first * 2)


def test_scalarization_leaves_a_frozen_parameter() -> None:
    weighting = Learned(3).requires_grad_(False)
    result = backward(losses_of(), weighting=weighting)

    assert weighting.s.grad is None
    torch.testing.assert_close(result.weights, (-weighting.s).exp().double())


@pytest.mark.parametrize("memory", [2**30, 0], ids=["rows kept", "rows dropped"])
def test_gramian_and_losses_are_given_in_one_precision(memory: int) -> None:
    weighting, losses = NormsAndLosses(), losses_of()
    result = backward(losses, weighting=weighting, memory=memory)

    gramian, values = weighting.seen
    assert gramian.dtype == values.dtype == torch.float64
    assert result.gramian is not None
    assert torch.equal(gramian, result.gramian)
    torch.testing.assert_close(values, torch.stack([*losses.values()]).detach().double())


def test_methods_see_no_graph() -> None:
    weighting = NormsAndLosses()
    backward(losses_of(), weighting=weighting)

    assert not any(seen.requires_grad for seen in weighting.seen)
