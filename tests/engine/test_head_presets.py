"""What the heads of single methods get: as their papers and LibMTL have it."""

import pytest
import torch
from torch import Tensor, nn

from gradwright.engine import Weighting, backward
from gradwright.weighting import (
    CRMOGM,
    DBMTL,
    MGDA,
    CAGrad,
    ExcessMTL,
    GradDrop,
    Log,
    MoCo,
    PCGrad,
    Sum,
    UPGrad,
)
from tests.engine.models.common import Heads, batch, mlp
from tests.engine.refusal import Step


class Positive:
    """A step whose losses are above 0."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.trunk, self.heads, self.x = mlp(nn.Tanh()), Heads(), batch()
        self.plain = self._plain()

    def losses(self) -> dict[str, Tensor]:
        return {name: loss.exp() for name, loss in self.heads(self.trunk(self.x)).items()}

    def _plain(self) -> list[Tensor]:
        """The gradient of each loss at its head."""
        losses = self.losses().values()
        pairs = zip(losses, self.heads.heads, strict=True)
        return [torch.autograd.grad(loss, [*head.parameters()])[0] for loss, head in pairs]

    def factors(self) -> list[float]:
        """What each head's gradient was multiplied by; all its entries by the same."""
        found = []
        for head, plain in zip(self.heads.heads, self.plain, strict=True):
            assert isinstance(head, nn.Linear) and head.weight.grad is not None
            ratio = head.weight.grad / plain
            torch.testing.assert_close(ratio, ratio.mean().expand_as(ratio))
            found.append(float(ratio.mean()))
        return found


def one_over(losses: dict[str, Tensor]) -> list[float]:
    return [1 / loss.item() for loss in losses.values()]


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("heads", ["paper", "libmtl", "log"])
@pytest.mark.parametrize(
    "method",
    [DBMTL(3), Log(CAGrad()), Log(UPGrad()), CRMOGM(Log(CAGrad()), 3)],
    ids=["DBMTL", "Log CAGrad", "Log UPGrad", "CRMOGM"],
)
def test_heads_of_logarithms(method: Weighting, heads: str) -> None:
    step = Positive()
    losses = step.losses()
    backward(losses, weighting=method, heads=heads)  # type: ignore[arg-type]

    assert step.factors() == pytest.approx(one_over(losses))


@pytest.mark.usefixtures("double")
def test_heads_of_the_losses_can_be_asked_for() -> None:
    step = Positive()
    backward(step.losses(), weighting=Log(UPGrad()), heads="unweighted")

    assert step.factors() == pytest.approx([1.0] * 3)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("method", [Log(Sum()), Log(MGDA())], ids=["Log Sum", "Log MGDA"])
def test_heads_of_weighted_logarithms(method: Weighting) -> None:
    step = Positive()
    result = backward(step.losses(), weighting=method)

    assert result.weights is not None
    assert step.factors() == pytest.approx(result.weights.tolist())


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("heads", ["paper", "libmtl", "weighted"])
def test_excess_mtl_weights_its_heads(heads: str) -> None:
    step, method = Positive(), ExcessMTL(3, step_size=0.5)
    for seed in range(4):
        torch.manual_seed(seed)
        step.x = batch()
        step.plain = step._plain()
        for part in (step.trunk, step.heads):
            part.zero_grad()
        result = backward(step.losses(), weighting=method, heads=heads)  # type: ignore[arg-type]

    assert result.weights is not None
    assert result.weights.tolist() == pytest.approx((3 * method.shares).tolist())
    assert float(result.weights.std()) > 0.01
    assert step.factors() == pytest.approx(result.weights.tolist())


@pytest.mark.usefixtures("double")
def test_excess_mtl_weights_the_heads_that_are_there() -> None:
    step, method = Positive(), ExcessMTL(3, step_size=0.5)
    backward(step.losses(), weighting=method)
    step.heads.zero_grad()
    result = backward(step.losses() | {"task1": None}, weighting=method)

    assert result.weights is not None
    assert result.weights[1] == 0
    assert float(result.weights.sum()) == pytest.approx(2)
    step.heads.heads.pop(1)
    step.plain.pop(1)
    assert step.factors() == pytest.approx(result.weights[[0, 2]].tolist())


@pytest.mark.parametrize("heads", ["paper", "unweighted"])
def test_excess_mtl_leaves_out_a_step_with_infinite_gradients(heads: str) -> None:
    step, method = Positive(), ExcessMTL(3)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)
    losses = step.losses()
    at_zero = (losses["task1"] - losses["task1"].detach()).clamp(min=0).sqrt()
    backward(losses | {"task1": at_zero}, weighting=method, scaler=scaler, heads=heads)  # type: ignore[arg-type]

    assert not all(bool(p.grad.isfinite().all()) for p in step.trunk.parameters())  # type: ignore[union-attr]
    assert method.shares.tolist() == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("method", [MoCo(3), GradDrop()], ids=["MoCo", "GradDrop"])
def test_an_update_without_weights_cannot_weight_heads(method: Weighting) -> None:
    says = ["gives no weights", "'unweighted'"]
    Step().refused(ValueError, says, weighting=method, heads="weighted")


def test_logarithms_of_negative_losses_are_refused() -> None:
    step = Step()
    losses = step.losses | {"task1": -step.losses["task1"].exp()}
    says = ["`heads` is 'log'", "loss 'task1' is -"]
    step.refused(ValueError, says, losses=losses, weighting=PCGrad(), heads="log")
