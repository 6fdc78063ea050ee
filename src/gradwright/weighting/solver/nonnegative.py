"""Quadratic programs over x ≥ 0, many right-hand sides at once."""

from dataclasses import dataclass

import torch
from torch import Tensor

RIDGE = 1e-10
"""Added to the diagonal, so that a singular matrix can be factored. Refinement takes it out."""

TOLERANCE = 1e-12
"""A slope this little below 0, relative to the largest, counts as 0: rounding is below 1e-14."""

EXCHANGES = 10
"""Rounds of free exchange; 2 to 5 are usual. What is unsolved then has many equal solutions."""


@dataclass(frozen=True)
class Nonnegative:
    """Minimisers `x` [problem, task], and which of their entries are `free` to be above 0."""

    x: Tensor
    free: Tensor


def minimise_nonnegative(matrix: Tensor, linear: Tensor, free: Tensor | None = None) -> Nonnegative:
    """The x ≥ 0 that minimises ½ xᵀ H x + qᵀ x, for each row q of `linear` [problem, task].

    `matrix` H [task, task] is positive semi-definite with a diagonal near 1. Of several minimisers,
    this is one. Where there is none (the values fall forever), x is large, and its slope H x + q
    stays below 0 somewhere. `free` [problem, task] guesses the entries above 0.

    First by block pivoting: solve for the free entries, exchange all entries with a wrong sign.
    That is quick but may go round in circles; the problems that do are solved one entry at a time,
    from inside, where the objective falls in every round.

    Kim, Park. Fast Nonnegative Matrix Factorization: An Active-Set-Like Method and Comparisons.
    SIAM Journal on Scientific Computing, 2011. Algorithm 2.
    Lawson, Hanson. Solving Least Squares Problems. 1974. Chapter 23.
    """
    programs = _Programs(matrix, linear, free)
    unsolved = _exchange(programs)
    if len(unsolved):
        _descend(programs, unsolved)
    if not programs.free.any():
        return Nonnegative(programs.x, programs.free)
    return Nonnegative(_refine(programs, matrix), programs.free)


class _Programs:
    """A guess of each program: `free` entries, and `x`, which is 0 in the others."""

    def __init__(self, matrix: Tensor, linear: Tensor, free: Tensor | None) -> None:
        self.matrix = matrix + RIDGE * torch.eye(len(matrix), dtype=matrix.dtype)
        self.linear = linear
        self.threshold = -TOLERANCE * linear.abs().amax(dim=1, keepdim=True)
        self.free = torch.zeros_like(linear, dtype=torch.bool) if free is None else free.clone()
        self.x = torch.zeros_like(linear) if free is None else self.solved(slice(None), -linear)

    def bound_slope(self, at: Tensor | slice) -> Tensor:
        """The slopes of the entries that are held at 0, for the programs `at`; 0 for free ones."""
        return (self.x[at] @ self.matrix + self.linear[at]).masked_fill_(self.free[at], 0)

    def solved(self, at: Tensor | slice, right: Tensor) -> Tensor:
        """For the programs `at`: the x that is 0 outside `free`, and has H x = `right` inside."""
        free = self.free[at].to(right)
        among_free = self.matrix * free[:, :, None] * free[:, None, :]
        among_free.diagonal(dim1=1, dim2=2).add_(1 - free)
        factor = torch.linalg.cholesky_ex(among_free).L
        return torch.cholesky_solve((right * free)[:, :, None], factor)[:, :, 0]


def _exchange(programs: _Programs) -> Tensor:
    """Solves most of the programs, and returns the numbers of those it leaves unsolved."""
    at = torch.arange(len(programs.x))
    for _ in range(EXCHANGES):
        wrong = (programs.x[at] < 0) | (programs.bound_slope(at) < programs.threshold[at])
        unsolved = wrong.any(dim=1)
        at = at[unsolved]
        if not len(at):
            break
        programs.free[at] ^= wrong[unsolved]
        programs.x[at] = programs.solved(at, -programs.linear[at])
    return at


def _descend(programs: _Programs, at: Tensor) -> None:
    """Solves the programs `at` from inside, freeing the entry of steepest slope when settled."""
    programs.x[at] = programs.x[at].clamp(min=0)
    programs.free[at] = programs.x[at] > 0
    settled = torch.zeros(len(at), dtype=torch.bool)
    for _ in range(20 * len(programs.matrix)):  # far more than it takes: rounding may go in circles
        lowest, steepest = programs.bound_slope(at).min(dim=1)
        unsolved = ~settled | (lowest < programs.threshold[at, 0])
        at, settled, steepest = at[unsolved], settled[unsolved], steepest[unsolved]
        if not len(at):
            break
        programs.free[at, steepest] |= settled
        settled = _step(programs, at)


def _step(programs: _Programs, at: Tensor) -> Tensor:
    """Solves for the free entries of the programs `at`; holds at 0 those that would fall below.

    Returns for which of the programs there are none.
    """
    goal = programs.solved(at, -programs.linear[at])
    programs.x[at], stopped = _towards(goal, programs.x[at])
    programs.free[at] &= ~stopped
    return ~stopped.any(dim=1)


def _refine(programs: _Programs, matrix: Tensor) -> Tensor:
    """`x` without the effect of the ridge: one more step, for what is left of the slope."""
    slope = programs.x @ matrix + programs.linear
    return _towards(programs.x - programs.solved(slice(None), slope), programs.x)[0]


def _towards(goal: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Goes from x ≥ 0 to `goal`, or up to where the first entries reach 0; also: which ones."""
    falls = goal < 0
    way = torch.where(falls, x / (x - goal), 1.0)
    shortest = way.amin(dim=1, keepdim=True)
    stopped = falls & (way == shortest)
    return (x + shortest * (goal - x)).clamp_(min=0).masked_fill_(stopped, 0), stopped
