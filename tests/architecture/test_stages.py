"""Cross-stitch networks and MTAN."""

import torch
from torch import Tensor, nn

from gradwright.architecture import MTAN, AttentionStage, CrossStitch
from tests.architecture.models import WIDTH, batch, heads, layer, model, stages


def test_units_start_as_in_the_paper() -> None:
    made = CrossStitch(stages(), {task: nn.Linear(WIDTH, 1) for task in ("a", "b")})

    assert len(made.units) == 3
    for unit in made.units:
        torch.testing.assert_close(unit.detach(), torch.tensor([[0.9, 0.1], [0.1, 0.9]]))


def test_rows_of_units_start_with_sum_one_for_any_number_of_tasks() -> None:
    unit = CrossStitch(stages(), heads(), channels=[4, 4, 4]).units[0]

    assert unit.shape == (3, 3, 4)
    torch.testing.assert_close(unit.sum(dim=1).detach(), torch.ones(3, 4))
    assert (unit.diagonal() == 0.9).all()


def test_units_can_start_otherwise() -> None:
    assert (CrossStitch(stages(), heads(), same=1.0, different=1.0).units[0] == 1).all()
    assert len(CrossStitch([layer], {"a": nn.Linear(WIDTH, 1)}).units[0]) == 1


def test_units_of_ones_and_zeros_leave_the_networks_alone() -> None:
    made, x = CrossStitch(stages(), heads(), same=1.0).double(), batch()
    found = made(x)

    for position, task in enumerate(made.tasks):
        features: Tensor = x
        for stage in made.stages:
            features = list(stage.children())[position](features)
        torch.testing.assert_close(found[task], made.heads[task](features))


class Whole(nn.Module):
    """A mask of ones."""

    def forward(self, u: Tensor) -> Tensor:
        return torch.ones_like(u[:, :WIDTH])


def test_attention_to_everything_leaves_the_shared_network() -> None:
    def stage(n_in: int) -> AttentionStage:
        return AttentionStage(layer(n_in), nn.Linear(WIDTH, WIDTH), Whole, nn.Identity())

    made, x = MTAN([stage(3), stage(WIDTH)], heads()).double(), batch()
    features = x
    for first, second in zip(made.first, made.second, strict=True):
        features = second(first(features))

    for task, output in made(x).items():
        torch.testing.assert_close(output, made.heads[task](features))


def test_the_attention_of_a_task_is_its_own() -> None:
    made, x = model("MTAN"), batch()
    assert isinstance(made, MTAN)
    before = made(x)
    with torch.no_grad():
        for parameter in made.attention["job"].parameters():
            parameter.add_(1)
    after = made(x)

    changed = [not torch.equal(before[task], after[task]) for task in made.tasks]
    assert changed == [False, True, False]
