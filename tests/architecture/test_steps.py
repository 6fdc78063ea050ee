"""ESMM and AITM: tasks that follow one another."""

import decimal

import pytest
import torch
from torch import Tensor

from gradwright.architecture import AITM, ESMM
from gradwright.architecture.esmm import logit_of_both
from tests.architecture.models import batch, model


def esmm() -> ESMM:
    made = model("ESMM")
    assert isinstance(made, ESMM)
    return made


def aitm() -> AITM:
    made = model("AITM")
    assert isinstance(made, AITM)
    return made


def test_a_step_is_as_probable_as_all_conditional_ones_together() -> None:
    made, x = esmm(), batch()
    p = {task: logit.sigmoid() for task, logit in made.conditional(x).items()}
    both = {task: logit.sigmoid() for task, logit in made(x).items()}

    torch.testing.assert_close(both["age"], p["age"])
    torch.testing.assert_close(both["job"], p["age"] * p["job"])
    torch.testing.assert_close(both["type"], p["age"] * p["job"] * p["type"])


def test_the_loss_of_a_later_step_trains_the_heads_before_it() -> None:
    made = esmm()
    loss = made.each({"job": batch()})["job"].sum()
    gradients = torch.autograd.grad(loss, list(made.heads.parameters()), allow_unused=True)

    assert [gradient is not None for gradient in gradients] == [True] * 4 + [False] * 2


@pytest.mark.parametrize("a", [-200.0, -40.0, -1.0, 0.0, 2.0, 40.0, 200.0])
@pytest.mark.parametrize("b", [-200.0, -3.0, 0.0, 40.0, 200.0])
def test_logits_stay_exact_where_probabilities_round(a: float, b: float) -> None:
    """Against numbers with 400 digits."""
    with decimal.localcontext() as context:
        context.prec = 400
        one, x, y = decimal.Decimal(1), decimal.Decimal(a), decimal.Decimal(b)
        p = one / (1 + (-x).exp()) / (1 + (-y).exp())
        expected = float((p / (1 - p)).ln())

    inputs = torch.tensor([a, b], dtype=torch.float64, requires_grad=True)
    found = logit_of_both(inputs[0], inputs[1])
    found.backward()

    torch.testing.assert_close(float(found.detach()), expected, rtol=1e-12, atol=1e-12)
    # d logit(p) / da = σ(-a) / (1 - p), and likewise for b
    q = float(1 / (1 - p))
    slopes = torch.sigmoid(-inputs.detach()) * q
    assert inputs.grad is not None
    torch.testing.assert_close(inputs.grad, slopes, rtol=1e-9, atol=1e-12)


def test_the_calibrator_is_the_excess_over_the_step_before() -> None:
    def logits(*p: float) -> Tensor:
        return torch.tensor(p).logit()[:, None]

    outputs = {"age": logits(0.5, 0.5), "job": logits(0.7, 0.1), "type": logits(0.9, 0.05)}
    found = aitm().regularization(outputs, weight=2.0)

    assert list(found) == ["job", "type"]
    torch.testing.assert_close(found["job"], torch.tensor(2 * (0.2 + 0) / 2))
    torch.testing.assert_close(found["type"], torch.tensor(2 * (0.2 + 0) / 2))


def test_the_calibrator_lets_probabilities_fall_in_order() -> None:
    """It alone is minimised: what was too probable becomes less so."""
    made, x = aitm(), batch(20)
    with torch.no_grad():
        made.heads["age"].get_parameter("bias").sub_(3)
    optimizer = torch.optim.SGD(made.parameters(), lr=0.5)
    found = []
    for _ in range(60):
        optimizer.zero_grad()
        excess = torch.stack(list(made.regularization(made(x)).values())).sum()
        found.append(float(excess.detach()))
        excess.backward()
        optimizer.step()

    assert found[0] > 0.01
    assert found[-1] < found[0] / 10


def test_information_goes_forward_only() -> None:
    made, x = aitm(), batch()
    before = made(x)
    with torch.no_grad():
        for parameter in made.towers["job"].parameters():
            parameter.add_(1)
    after = made(x)

    changed = [not torch.equal(before[task], after[task]) for task in made.tasks]
    assert changed == [False, True, True]
