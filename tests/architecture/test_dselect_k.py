"""DSelect-k: gates end with k experts, and the regulariser acts."""

import pytest
import torch
from torch import nn

from gradwright.architecture import DSelectK
from gradwright.architecture.selection import binary_codes, entropy, selectors, smooth_step
from tests.architecture.models import batch, gate, heads, layer, model
from tests.reference.architectures import dselect_k_regularization


def dselect_k(name: str) -> DSelectK:
    made = model(name)
    assert isinstance(made, DSelectK)
    return made


@pytest.mark.parametrize("name", ["DSelectK", "DSelectK-gate"])
def test_the_regulariser_is_the_papers_with_its_gradient(name: str) -> None:
    made, x = dselect_k(name), batch()
    made.entropy_weight = 0.1

    for task, term in made.regularization(x).items():
        expected = dselect_k_regularization(made, task, x)
        torch.testing.assert_close(term, expected)
        parameters = list(made.z[task].parameters())
        for found, twin in zip(
            torch.autograd.grad(term, parameters),
            torch.autograd.grad(expected, parameters),
            strict=True,
        ):
            torch.testing.assert_close(found, twin)
            assert found.any()


@pytest.mark.parametrize("name", ["DSelectK", "DSelectK-gate"])
def test_the_regulariser_changes_the_gradients_of_every_gate(name: str) -> None:
    """Not so in LibMTL, whose trainer sets them to zero."""
    made, x = dselect_k(name), batch()
    outputs = made(x)
    for task in made.tasks:
        parameters = list(made.task_parameters(task))
        loss = outputs[task].square().mean()
        plain = torch.autograd.grad(loss, parameters, retain_graph=True)
        with_term = torch.autograd.grad(loss + made.regularization(x)[task], parameters)
        changed = [not torch.equal(a, b) for a, b in zip(plain, with_term, strict=True)]
        assert any(changed)
        assert {id(p) for p, c in zip(parameters, changed, strict=True) if c} == {
            id(p) for p in made.z[task].parameters()
        }


def test_minimising_the_regulariser_leaves_one_expert_per_selector() -> None:
    torch.manual_seed(0)
    made = DSelectK(layer, 4, 2, heads(), entropy_weight=1.0)
    optimizer = torch.optim.SGD(made.parameters(), lr=0.1)
    for _ in range(200):
        optimizer.zero_grad()
        torch.stack(list(made.regularization(torch.empty(0)).values())).sum().backward()
        optimizer.step()

    for weights in made.weights(torch.empty(0)).values():
        assert 1 <= int((weights > 0).sum()) <= 2


@pytest.mark.parametrize("n_experts", [2, 3, 5, 8])
def test_far_from_zero_a_gate_takes_exactly_k_experts(n_experts: int) -> None:
    made = DSelectK(layer, n_experts, 2, heads())
    chosen = [n_experts - 1, 0]
    with torch.no_grad():
        for part in made.z.children():
            for parameter in part.parameters():
                parameter.copy_((2.0 * made.codes[chosen] - 1).reshape(parameter.shape))

    for weights in made.weights(batch().float()).values():
        assert weights[0].nonzero().flatten().tolist() == [0, n_experts - 1]
        assert float(weights.detach().sum()) == pytest.approx(1)


def test_each_example_has_its_own_choice_with_a_gate() -> None:
    made = dselect_k("DSelectK-gate")
    weights = made.weights(batch())["age"]

    assert weights.shape == (5, 4)
    assert not torch.allclose(weights[0], weights[1])
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(5, dtype=torch.float64))


def test_gates_start_where_the_smooth_step_has_a_gradient() -> None:
    made = DSelectK(layer, 4, 2, heads(), gate=lambda n: nn.Linear(40, n), gamma=0.5)

    assert max(float(p.detach().abs().max()) for p in made.z.parameters()) <= 0.5 / 100 + 1e-7
    assert max(float(p.detach().abs().max()) for p in made.w.parameters()) <= 0.05 + 1e-7
    assert all(p.any() for p in made.parameters())


def test_gamma_is_the_width_of_the_step() -> None:
    t = torch.tensor([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0], requires_grad=True)
    S = smooth_step(t, gamma=2.0)
    (slope,) = torch.autograd.grad(S.sum(), t)

    torch.testing.assert_close(S, torch.tensor([0, 0, 0.15625, 0.5, 0.84375, 1, 1]))
    torch.testing.assert_close(slope, torch.tensor([0, 0, 0.5625, 0.75, 0.5625, 0, 0]))


def test_codes_are_binary_numbers() -> None:
    assert binary_codes(5).int().tolist() == [
        [0, 0, 0],
        [0, 0, 1],
        [0, 1, 0],
        [0, 1, 1],
        [1, 0, 0],
    ]
    assert binary_codes(2).shape == (2, 1)


def test_selectors_of_all_codes_sum_to_one() -> None:
    torch.manual_seed(0)
    r = selectors(torch.randn(7, 3, 3) / 3, binary_codes(8), gamma=1.0)

    assert r.shape == (7, 3, 8)
    torch.testing.assert_close(r.sum(dim=-1), torch.ones(7, 3))


def test_entropy_is_zero_where_one_expert_is_chosen() -> None:
    r = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]])

    torch.testing.assert_close(entropy(r), torch.tensor([0.0, 1.3862944]), atol=1e-5, rtol=0)


def test_batches_of_one_are_no_special_case() -> None:
    made = DSelectK(layer, 4, 2, heads(), gate=gate)

    assert made(batch(1).float())["age"].shape == (1, 1)
