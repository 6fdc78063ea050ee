"""Learning to branch: draws, their gradients, cooling, the tree that is left."""

import pytest
import torch
from torch import nn

from gradwright.architecture import LTB
from gradwright.architecture.branching import Branching
from tests.architecture.models import WIDTH, batch, heads, layer, model, stages

ONE = torch.tensor(1.0)


def ltb(name: str = "LTB") -> LTB:
    made = model(name)
    assert isinstance(made, LTB)
    return made


def branching(n_nodes: int, n_parents: int) -> Branching:
    made = Branching(n_nodes, n_parents)
    nn.init.normal_(made.logits)
    return made


def test_hard_draws_are_one_hot() -> None:
    torch.manual_seed(0)
    draw = branching(50, 3)(ONE, hard=True, learned=True)

    assert set(draw.flatten().tolist()) == {0.0, 1.0}
    assert draw.sum(dim=1).tolist() == [1.0] * 50


def test_hard_draws_have_the_gradient_of_the_softmax() -> None:
    made, weights = branching(4, 3), torch.randn(4, 3)
    gradients = []
    for hard in (True, False):
        torch.manual_seed(3)
        draw = made(torch.tensor(0.7), hard, learned=True)
        gradients.append(torch.autograd.grad((draw * weights).sum(), made.logits)[0])

    assert gradients[0].any()
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("temperature", [0.1, 5.0])
def test_parents_are_drawn_as_often_as_the_softmax_says(temperature: float) -> None:
    torch.manual_seed(0)
    made = Branching(1, 3)
    with torch.no_grad():
        made.logits.copy_(torch.tensor([0.6, 0.3, 0.1]).log())
    draws = torch.cat([made(torch.tensor(temperature), True, True) for _ in range(2000)])

    torch.testing.assert_close(draws.mean(dim=0), torch.tensor([0.6, 0.3, 0.1]), atol=0.04, rtol=0)


def test_soft_draws_sharpen_as_the_temperature_falls() -> None:
    made = branching(20, 3)
    peaks = []
    for temperature in (10.0, 1.0, 0.1):
        torch.manual_seed(0)
        draw = made(torch.tensor(temperature), False, True).detach()
        peaks.append(float(draw.amax(dim=1).mean()))

    assert peaks[0] < peaks[1] < peaks[2]


def test_advance_cools() -> None:
    made = LTB(stages(), heads(), temperature=6.0)
    found = []
    for _ in range(4):
        found.append(float(made.cooling.temperature))
        made.advance()

    assert found == pytest.approx([6, 6 / 2**0.5, 6 / 3**0.5, 3])


def test_the_epoch_is_part_of_the_state() -> None:
    made, other = LTB(stages(), heads(), warm_up=3), LTB(stages(), heads(), warm_up=3)
    for _ in range(3):
        made.advance()
    other.load_state_dict(made.state_dict())

    assert other.cooling.temperature == made.cooling.temperature
    assert not other.cooling.warming_up


def test_choices_are_not_learned_while_it_warms_up() -> None:
    made = LTB(stages(), heads(), warm_up=2).double()
    gradients = []
    for _ in range(3):
        made.zero_grad()
        torch.manual_seed(0)
        sum(y.square().mean() for y in made(batch()).values()).backward()
        choices = [*made.branchings.parameters(), *made.head_branchings.parameters()]
        gradients.append([p.grad is not None and bool(p.grad.any()) for p in choices])
        assert any(p.grad is not None and p.grad.any() for p in made.stages.parameters())
        made.advance()

    assert not any(gradients[0]) and not any(gradients[1]) and all(gradients[2])


def test_evaluation_takes_the_likeliest_branch_and_draws_nothing() -> None:
    made, x = ltb().eval(), batch()
    state = torch.get_rng_state()
    found = made(x)
    assert torch.equal(torch.get_rng_state(), state)

    for task, branch in made.branches().items():
        features = x
        for stage, node in zip(made.stages, branch, strict=True):
            features = list(stage.children())[node](features)
        torch.testing.assert_close(found[task], made.heads[task](features))


def test_the_branch_of_a_task_is_read_from_its_head_down() -> None:
    made = LTB(stages()[:2], heads(), n_nodes=2)
    with torch.no_grad():
        for parameter, rows in [
            (made.branchings[0].get_parameter("logits"), [[0.0, 1.0], [2.0, 1.0]]),
            (made.head_branchings["age"].get_parameter("logits"), [[3.0, 1.0]]),
            (made.head_branchings["job"].get_parameter("logits"), [[1.0, 3.0]]),
        ]:
            parameter.copy_(torch.tensor(rows))

    assert made.branches() == {"age": [1, 0], "job": [0, 1], "type": [1, 0]}


def test_evaluation_computes_each_node_that_is_needed_once() -> None:
    made = ltb().eval()
    calls: list[tuple[int, int]] = []
    for position, stage in enumerate(made.stages):
        for node, module in enumerate(stage.children()):
            module.register_forward_hook(lambda *_, at=(position, node): calls.append(at))
    made(batch())

    needed = {(p, node) for b in made.branches().values() for p, node in enumerate(b)}
    assert sorted(calls) == sorted(needed)


def test_one_node_per_stage_is_hard_sharing() -> None:
    made = LTB([layer, lambda: layer(WIDTH)], heads(), n_nodes=1).double()

    torch.testing.assert_close(made(batch()), made.eval()(batch()))
