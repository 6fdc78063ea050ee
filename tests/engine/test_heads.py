"""What a head's own gradient is multiplied by."""

from typing import ClassVar

import pytest
import torch
from torch import Tensor, nn

from gradwright.engine import HeadRule, Weighting, backward
from tests.engine.methods import Counting, InverseNorms, Squashed
from tests.engine.models.common import Heads, batch, mlp


class Presets(InverseNorms):
    paper_heads: ClassVar[HeadRule] = "weighted"
    libmtl_heads: ClassVar[HeadRule] = "mean"
    torchjd_heads: ClassVar[HeadRule] = "unweighted"


def head_gradients(weighting: Weighting, memory: int = 2**30, **heads: str) -> tuple[list, Tensor]:
    """Each head's gradient divided by the plain one, and the weights."""
    torch.manual_seed(0)
    trunk, made, x = mlp(nn.Tanh()), Heads(), batch()
    weights = [head.weight for head in made.heads if isinstance(head, nn.Linear)]
    result = backward(made(trunk(x)), weighting=weighting, memory=memory, **heads)  # type: ignore[arg-type]
    found = [weight.grad for weight in weights]
    assert result.weights is not None or isinstance(weighting, Squashed)
    made.zero_grad()
    torch.stack([*made(trunk(x)).values()]).sum().backward()
    ratios = [
        (mine / weight.grad).mean().item()
        for mine, weight in zip(found, weights, strict=True)
        if mine is not None and weight.grad is not None
    ]
    return ratios, torch.zeros(0) if result.weights is None else result.weights


@pytest.mark.parametrize("memory", [2**30, 0], ids=["rows kept", "rows dropped"])
@pytest.mark.parametrize("rule", ["weighted", "unweighted", "mean"])
def test_rule(rule: HeadRule, memory: int) -> None:
    ratios, weights = head_gradients(InverseNorms(), memory, heads=rule)

    expected = {"weighted": weights.tolist(), "unweighted": [1.0] * 3, "mean": [1 / 3] * 3}
    assert ratios == pytest.approx(expected[rule], rel=1e-4)


@pytest.mark.parametrize(
    ("preset", "rule"), [("paper", "weighted"), ("libmtl", "mean"), ("torchjd", "unweighted")]
)
def test_preset_is_the_rule_of_the_method(preset: str, rule: HeadRule) -> None:
    ratios, _ = head_gradients(Presets(), heads=preset)

    assert ratios == pytest.approx(head_gradients(InverseNorms(), heads=rule)[0], rel=1e-6)


def test_paper_is_the_default() -> None:
    assert head_gradients(Presets())[0] == head_gradients(Presets(), heads="paper")[0]
    assert head_gradients(InverseNorms())[0] == pytest.approx([1.0] * 3, rel=1e-6)


@pytest.mark.parametrize("heads", ["paper", "libmtl", "torchjd", "weighted"])
def test_loss_methods_weight_whole_losses(heads: str) -> None:
    assert head_gradients(Counting(), heads=heads)[0] == pytest.approx([1.0, 2.0, 3.0], rel=1e-5)


@pytest.mark.parametrize(("heads", "factor"), [("unweighted", 1.0), ("mean", 1 / 3)])
def test_heads_of_a_method_without_weights(heads: str, factor: float) -> None:
    assert head_gradients(Squashed(), heads=heads)[0] == pytest.approx([factor] * 3, rel=1e-4)


@pytest.mark.parametrize(
    ("weighting", "heads"),
    [
        pytest.param(InverseNorms(), "equal", id="unknown rule"),
        pytest.param(None, "equal", id="unknown rule, no weighting"),
        pytest.param(Counting(), "unweighted", id="loss method, unweighted"),
        pytest.param(Counting(), "mean", id="loss method, mean"),
        pytest.param(Squashed(), "weighted", id="no weights to take"),
    ],
)
def test_rule_that_does_not_suit_is_refused(weighting: Weighting | None, heads: str) -> None:
    trunk, made = mlp(), Heads()
    with pytest.raises(ValueError, match=f"`heads` is '{heads}'"):
        backward(made(trunk(batch())), weighting=weighting, heads=heads)  # type: ignore[arg-type]

    assert all(parameter.grad is None for parameter in (*trunk.parameters(), *made.parameters()))


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("memory", [2**30, 0], ids=["rows kept", "rows dropped"])
def test_shared_parameters_that_are_given_follow_the_weights(memory: int) -> None:
    """The first layer is where the tasks meet; all else follows the rule for heads."""
    torch.manual_seed(0)
    trunk, made, x = mlp(nn.Tanh()), Heads(), batch()
    losses = [*made(trunk(x)).values()]
    first = [*trunk[0].parameters()]
    rows = [torch.autograd.grad(loss, [*trunk.parameters()], retain_graph=True) for loss in losses]
    jacobian = torch.stack([torch.cat([part.flatten() for part in row[:2]]) for row in rows])
    result = backward(losses, weighting=InverseNorms(), shared=first, memory=memory)

    assert result.weights is not None
    torch.testing.assert_close(result.gramian, jacobian @ jacobian.T)
    for position, leaf in enumerate(trunk.parameters()):
        factors = result.weights if position < 2 else torch.ones(3)
        expected = sum(f * row[position] for f, row in zip(factors, rows, strict=True))
        torch.testing.assert_close(leaf.grad, expected)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("memory", [2**30, 0], ids=["rows kept", "rows dropped"])
def test_shared_may_hold_a_parameter_of_one_head(memory: int) -> None:
    torch.manual_seed(0)
    trunk, made, x = mlp(nn.Tanh()), Heads(), batch()
    losses = [*made(trunk(x)).values()]
    (head,) = (
        head.weight for n, head in enumerate(made.heads) if n == 1 and isinstance(head, nn.Linear)
    )
    given = [*trunk.parameters(), head]
    (own,) = torch.autograd.grad(losses[1], [head], retain_graph=True)
    base = backward(losses, weighting=InverseNorms(), retain_graph=True)
    head.grad = None
    result = backward(losses, weighting=InverseNorms(), shared=given, memory=memory)

    assert result.gramian is not None
    assert base.gramian is not None
    assert result.weights is not None
    added = torch.zeros(3, 3)
    added[1, 1] = own.square().sum()
    torch.testing.assert_close(result.gramian, base.gramian + added)
    torch.testing.assert_close(head.grad, result.weights[1] * own)
