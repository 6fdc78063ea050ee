"""What a step of a method costs, counted: backwards through the trunk, numbers kept as state."""

from typing import Any, Literal

import torch
from torch import Tensor, nn

import gradwright as gw
from docs.catalogue import Make
from docs.probe import Step, run
from gradwright.engine.weights.bases import (
    CrossGramianWeighting,
    GramianLossWeighting,
    GramianWeighting,
    GroupWeighting,
    Weighting,
)
from gradwright.weighting.bayes import BayesAgg
from gradwright.weighting.bilevel import BilevelWeighting

FEW, MANY = 5, 7  # tasks; two numbers make a line


class Passes:
    """How often a place in the trunk was passed, there and back."""

    forwards = 0
    backwards = 0


class _There(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, passes: Passes) -> Tensor:
        passes.forwards += 1
        ctx.passes = passes
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        back: Tensor = _Back.apply(gradient, ctx.passes)  # type: ignore[no-untyped-call]
        return back, None


class _Back(torch.autograd.Function):
    """Its own backward is run where a gradient is differentiated."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, passes: Passes) -> Tensor:
        passes.backwards += 1
        ctx.passes = passes
        return gradient.clone()

    @staticmethod
    def backward(ctx: Any, second: Tensor) -> tuple[Tensor, None]:
        ctx.passes.backwards += 1
        return second, None


class Model(nn.Module):
    """A trunk of two layers, the counter between them, and a head per task."""

    def __init__(self, n_tasks: int) -> None:
        super().__init__()
        self.passes = Passes()
        self.first, self.last = nn.Linear(3, 128), nn.Linear(128, 6)
        self.heads = nn.ModuleList(nn.Linear(6, 1) for _ in range(n_tasks))

    def features(self) -> Tensor:
        """[example, feature]"""
        inputs = torch.arange(12.0).sin().reshape(4, 3)
        x = self.first(inputs).tanh()
        x = _There.apply(x, self.passes)  # type: ignore[no-untyped-call]
        found: Tensor = self.last(x).tanh()
        return found

    def losses(self) -> list[Tensor]:
        """One scalar per task."""
        features = self.features()
        return [(head(features) - 1).square().mean() for head in self.heads]


def backwards(make: Make, route: Literal["rows", "lean"] = "rows") -> str:
    """Backwards through the trunk for K tasks, or empty where the method has no such route."""
    counts = [_count(make, n_tasks, route) for n_tasks in (FEW, MANY)]
    return "" if None in counts else line(*(count for count in counts if count is not None))


def line(few: int, many: int) -> str:
    """The line a K + b through what was counted for FEW and MANY tasks."""
    a, rest = divmod(many - few, MANY - FEW)
    assert not rest
    b = few - a * FEW
    terms = [f"{a} K" if a > 1 else "K"] if a else []
    return " + ".join([*terms, str(b)] if b or not a else terms)


def state(make: Make) -> str:
    """Which numbers of tasks and parameters what the method keeps grows with, or empty."""
    runs = [_state_after_steps(make, *size) for size in ((5, 6), (10, 6), (5, 60))]
    moved = set().union(*(names for names, _ in runs))
    small, tasks, parameters = (sum(sizes[name] for name in moved) for _, sizes in runs)
    if parameters > small:
        return "K × P"
    return "K × K" if tasks > 2 * small else "K" if small else ""


def _count(make: Make, n_tasks: int, route: Literal["rows", "lean"]) -> int | None:
    torch.manual_seed(0)
    model, method = Model(n_tasks), make(n_tasks)
    if isinstance(method, GramianWeighting | GramianLossWeighting):
        assert gw.backward(model.losses(), weighting=method, route=route).route.name == route
    elif route == "lean":
        return None
    elif isinstance(method, BayesAgg):
        _bayes_step(model, method)
    elif isinstance(method, BilevelWeighting):
        method.backward(model, model.losses, model.losses)
    elif isinstance(method, CrossGramianWeighting):
        gw.backward(model.losses(), weighting=method, other=[model.losses(), model.losses()])
    elif isinstance(method, GroupWeighting):
        groups = {"trunk": [*model.first.parameters(), *model.last.parameters()]}
        gw.backward(model.losses(), weighting=method, shared=groups)
    else:
        assert isinstance(method, Weighting)
        gw.backward(model.losses(), weighting=method)
    return model.passes.backwards


def _bayes_step(model: Model, method: BayesAgg) -> None:
    features = model.features()
    targets = [torch.ones(len(features), 1) for _ in model.heads]
    features.backward(method(features, targets, list(model.heads)))


def _state_after_steps(make: Make, n_tasks: int, size: int) -> tuple[set[str], dict[str, int]]:
    """The names of what has moved, or come, in two steps; and how many numbers each state has."""
    method = make(n_tasks)
    before = {name: value.clone() for name, value in method.state_dict().items()}
    if isinstance(method, BayesAgg):  # `fit` makes its state, not a step
        return set(), {name: value.numel() for name, value in before.items()}
    draw = torch.Generator().manual_seed(0)
    rows = torch.randn(n_tasks, size, generator=draw).double()
    for _ in range(2):
        run(method, Step(rows, rows.square().sum(1), torch.linspace(0.5, 0.9, n_tasks)))
    after = method.state_dict()
    moved = {n for n, now in after.items() if n not in before or not torch.equal(now, before[n])}
    return moved, {name: value.numel() for name, value in after.items()}
