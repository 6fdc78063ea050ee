"""School: the exam scores of 139 schools, one task each, with data of its own."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import gradwright as gw
from gradwright.architecture import Architecture, MMoE, SharedBottom
from gradwright.engine import Weighting
from gradwright.weighting import FAMO, NashMTL, UPGrad
from tests.data import shared

N_TASKS, N_FEATURES, WIDTH, BATCH = 139, 28, 32, 16

Sets = dict[str, tuple[Tensor, Tensor]]
"""By task: features [student, 28] and scores [student, 1], both with mean 0 and deviation 1."""


def school() -> Sets:
    """All students, task by task."""
    read = pytest.importorskip("scipy.io").loadmat(shared("data/school.mat"))
    xs, ys = ([torch.tensor(cell).float() for cell in read[key].flat] for key in ("X", "Y"))
    return {str(n): pair for n, pair in enumerate(zip(_scaled(xs), _scaled(ys), strict=True))}


def artificial() -> Sets:
    """As many tasks, of few students each."""
    draw = torch.Generator().manual_seed(0)
    slopes = torch.randn(N_FEATURES, 1, generator=draw)
    xs = [torch.randn(20, N_FEATURES, generator=draw) for _ in range(N_TASKS)]
    return {str(n): (x, (x @ slopes) / 5) for n, x in enumerate(xs)}


def _scaled(parts: list[Tensor]) -> list[Tensor]:
    whole = torch.cat(parts)
    mean, deviation = whole.mean(0), whole.std(0).clamp(min=1e-6)
    return [(part - mean) / deviation for part in parts]


def expert() -> nn.Module:
    return nn.Sequential(nn.Linear(N_FEATURES, WIDTH), nn.ReLU())


def made(name: str, sets: Sets) -> Architecture:
    torch.manual_seed(0)
    heads = {task: nn.Linear(WIDTH, 1) for task in sets}
    if name == "SharedBottom":
        return SharedBottom(expert(), heads)
    return MMoE(expert, 4, lambda n: nn.Linear(N_FEATURES, n), heads)


def losses(model: Architecture, sets: Sets) -> dict[str, Tensor]:
    """Of the examples of each task, all with one call of the model."""
    outputs = model.each({task: x for task, (x, _) in sets.items()})
    return {task: (outputs[task] - y).square().mean() for task, (_, y) in sets.items()}


def drawn(sets: Sets) -> Sets:
    """A batch of each task."""
    chosen = {task: torch.randint(len(x), (BATCH,)) for task, (x, _) in sets.items()}
    return {task: (x[chosen[task]], y[chosen[task]]) for task, (x, y) in sets.items()}


def mean_loss(model: Architecture, sets: Sets) -> float:
    with torch.no_grad():
        return float(torch.stack(list(losses(model, sets).values())).mean())


def train(model: Architecture, sets: Sets, weighting: Weighting | None, steps: int) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        step = gw.backward(losses(model, drawn(sets)), weighting=weighting)
        assert len(step.losses) == N_TASKS
        assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
        optimizer.step()


WEIGHTINGS: dict[str, Callable[[], Weighting | None]] = {
    "sum": lambda: None,
    "FAMO": lambda: FAMO(N_TASKS),
    "UPGrad": UPGrad,
    "NashMTL": lambda: NashMTL(max_norm=1.0),
}


@pytest.mark.parametrize("name", ["SharedBottom", "MMoE"])
def test_139_heads_train(name: str) -> None:
    sets = artificial()
    model = made(name, sets)
    before = mean_loss(model, sets)
    train(model, sets, NashMTL(max_norm=1.0), steps=3)

    assert mean_loss(model, sets) < 0.98 * before


def test_two_of_139_tasks_are_there() -> None:
    sets = artificial()
    model = made("MMoE", sets)
    found = losses(model, {task: sets[task] for task in ("3", "138")})
    step = gw.backward({task: found.get(task) for task in sets}, weighting=UPGrad())

    assert step.weights is not None and step.weights.nonzero().flatten().tolist() == [3, 138]
    trained = [task for task in sets if model.heads[task].get_parameter("weight").grad is not None]
    assert trained == ["3", "138"]


@pytest.mark.slow
@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("name", ["SharedBottom", "MMoE"])
def test_school_trains(name: str, weighting: str) -> None:
    """Better than the mean score, which has a loss of about 1 in these units."""
    sets = school()
    assert len(sets) == N_TASKS
    model = made(name, sets)
    train(model, sets, WEIGHTINGS[weighting](), steps=15)

    assert mean_loss(model, sets) < 0.9
