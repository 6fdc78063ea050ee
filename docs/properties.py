"""Named properties of a method, each found by trying it on problems of many kinds."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from docs.catalogue import Make
from docs.probe import STEPS, Outcome, Step, outcome

TASKS = 5  # among fewer, scores of Krum are always equal for two of them
RANDOM, AGAINST, ALIKE = [0, 0, 0, 0, 0], [1, -1, 1, -1, 1], [1, 1, 1, 1, 1]

Problem = list[Step]
Tried = list[tuple[Problem, Outcome]]


def properties(make: Make) -> dict[str, str]:
    """A mark by the name of each property, empty where the method has not got it."""
    independent = [(problem, outcome(make, problem)) for problem in problems(rank_missing=False)]
    dependent = [(problem, outcome(make, problem)) for problem in problems(rank_missing=True)]
    some = independent[1::2]  # one of each kind: these properties are tried by running them again
    agreeing = "✓" if agrees(dependent) else "independent"
    return {
        "order": _mark(keeps(make, some, reordered)),
        "scale": _mark(keeps(make, some, scaled)),
        "units": _mark(keeps(make, some, in_units)),
        "no conflict": agreeing if agrees(independent) else "",
        "shares": _mark(shares(independent + dependent)),
        "stationary": _mark(stays(make)),
        "random": _mark(draws(make, independent)),
    }


def problems(*, rank_missing: bool) -> Iterator[Problem]:
    """Gradients of like and of very different lengths: random, in strong conflict, or alike."""
    for spread in (0.0, 2.0):
        for signs in RANDOM, AGAINST, ALIKE:
            draw = torch.Generator().manual_seed(0)
            size = TASKS - 2 if rank_missing and signs is RANDOM else TASKS + 1
            steps = [_step(size, spread, torch.tensor(signs).double(), draw) for _ in range(STEPS)]
            yield [_with_opposites(step) for step in steps] if rank_missing else steps


def _step(size: int, spread: float, signs: Tensor, draw: torch.Generator) -> Step:
    rows = torch.randn(TASKS, size, generator=draw).double()
    rows += 2 * signs[:, None] * torch.randn(size, generator=draw).double()
    lengths = 10 ** (spread * torch.rand(TASKS, 1, generator=draw).double())
    losses, left = 0.5 + torch.rand(2, TASKS, generator=draw).double() / 2
    return Step(lengths * rows, 2 * losses, left)


def _with_opposites(step: Step) -> Step:
    """The second gradient against the first, where the rank is not missing otherwise."""
    rows = step.rows.clone()
    if rows.shape[1] > len(rows):
        rows[1] = -2 * rows[0]
    return Step(rows, step.losses, step.left)


def keeps(make: Make, tried: Tried, change: Callable[[Step], Step]) -> bool:
    """Whether the update points where it did when the problem is changed so."""
    for problem, before in tried:
        changed = [change(step) for step in problem]
        one = _direction(before.update, problem)
        other = _direction(outcome(make, changed).update, changed)
        if (one - other).norm() > 1e-4:
            return False
    return True


def reordered(step: Step) -> Step:
    """The tasks in another order."""
    return Step(step.rows.roll(1, 0), step.losses.roll(1, 0), step.left.roll(1, 0))


def scaled(step: Step) -> Step:
    """All losses 100 times as large."""
    return Step(100 * step.rows, 100 * step.losses, step.left)


def in_units(step: Step) -> Step:
    """Each loss in a unit of its own."""
    units = 10.0 ** (torch.arange(len(step.losses)).double() % 3 - 1)
    return Step(units[:, None] * step.rows, units * step.losses, step.left)


def agrees(tried: Tried) -> bool:
    """Whether no task's gradient has an inner product below 0 with the update."""
    for problem, found in tried:
        rows = problem[-1].rows
        if (rows @ _direction(found.update, problem) < -1e-6 * rows.norm(dim=1)).any():
            return False
    return True


def shares(tried: Tried) -> bool:
    """Whether the weights are at least 0 and sum to 1."""
    for _, found in tried:
        w = found.weights
        if w is None or (w < -1e-12).any() or abs(float(w.sum()) - 1) > 1e-6:
            return False
    return True


def stays(make: Make) -> bool:
    """Whether there is no update where some mean of the gradients is 0."""
    for problem in problems(rank_missing=False):
        closed = [_closed(step) for step in problem]
        if _direction(outcome(make, closed).update, closed).any():
            return False
    return True


def draws(make: Make, tried: Tried) -> bool:
    """Whether the update changes with torch's random numbers."""
    return any(
        not torch.equal(outcome(make, problem, seed=1).update, before.update)
        for problem, before in tried
    )


def _closed(step: Step) -> Step:
    """With a last gradient against a mean of the others."""
    against = -(torch.arange(1.0, len(step.losses)).double() @ step.rows[:-1])
    return Step(torch.cat([step.rows[:-1], against[None]]), step.losses, step.left)


def _direction(update: Tensor, problem: Problem) -> Tensor:
    """The update with length 1; 0 where it is rounding."""
    size = update.norm()
    return update / size if size > 1e-6 * problem[-1].rows.norm() else torch.zeros_like(update)


def _mark(holds: bool) -> str:
    return "✓" if holds else ""
