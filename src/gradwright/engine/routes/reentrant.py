"""Rows of graphs with reentrant checkpoints.

Such a node runs its part again in backward and calls `torch.autograd.backward` itself. So it works
under `.backward()` without `inputs` only, adds straight into `.grad`, and its parameters are in no
graph before. The pass is a plain backward; every leaf that it or the calls within add to has its
`.grad` set aside first, and its gradient is taken out afterwards.
"""

import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge
from torch.utils.checkpoint import CheckpointFunction

from gradwright.engine.basics.pull import Cotangents, edge_of, zeros_at
from gradwright.engine.errors import LossError
from gradwright.engine.plan.borders import can_cut
from gradwright.engine.plan.stages import Plan, Stage
from gradwright.engine.routes.rows import Rows, run_legs
from gradwright.graph import leaves


def has_reentrant(plan: Plan) -> bool:
    """Whether some part of the graph was checkpointed with `use_reentrant=True`."""
    return any(_is_reentrant(node) for node in plan.reach)


def reentrant_rows(plan: Plan, *, keep: bool) -> tuple[Rows, Plan]:
    """The gradient of every loss at every leaf, and the plan with the leaves that were hidden."""
    found = plan.leaves
    rows: Rows = {edge: [None] * plan.n_tasks for edge in found}
    heads_first = not keep and can_cut(plan) and not _in_heads(plan)
    for task in range(plan.n_tasks):
        start = dict(plan.starts[task])
        if heads_first:
            for edge, gradient in run_legs(plan, plan.legs_of(task)[:-1], start):
                rows[edge][task] = gradient
        kept = keep or not heads_first or task != plan.n_tasks - 1
        for leaf, gradient in _plain_backward(start, found.values(), keep=kept):
            edge = edge_of(leaf)
            found.setdefault(edge, leaf)
            rows.setdefault(edge, [None] * plan.n_tasks)[task] = gradient
    if not keep and not heads_first:
        _plain_backward(zeros_at(plan.starts), plan.leaves.values(), keep=False)  # frees it all
    return rows, _with_leaves(plan, found, rows)


def _is_reentrant(node: object) -> bool:
    return isinstance(node, CheckpointFunction._backward_cls)


def _in_heads(plan: Plan) -> bool:
    """Whether all but the last leg of some task has such a node, or there is but one leg."""
    for task in range(plan.n_tasks - 1):
        legs = plan.legs_of(task)
        early = frozenset().union(*(leg.stages for leg in legs[:-1]))
        if any(tasks in early and _is_reentrant(node) for node, tasks in plan.reach.items()):
            return True
    return False


def _plain_backward(
    start: Cotangents, known: Iterable[Tensor], *, keep: bool
) -> list[tuple[Tensor, Tensor]]:
    aside = _Aside()
    try:
        aside.take(known)
        with _before_each_backward(aside.take):
            torch.autograd.backward(list(start), list(start.values()), retain_graph=keep)
        return aside.gradients()
    finally:
        aside.put_back()


class _Aside:
    """Leaves whose `.grad` is away, so that a backward writes a fresh one."""

    def __init__(self) -> None:
        # weak: the copies of its inputs that a checkpoint makes shall die with it
        self._before: dict[int, tuple[weakref.ref[Tensor], Tensor | None]] = {}

    def take(self, found: Iterable[Tensor]) -> None:
        for leaf in found:
            entry = self._before.get(id(leaf))
            if entry is not None and entry[0]() is leaf:
                continue
            if getattr(leaf, "_post_accumulate_grad_hooks", None):
                raise LossError(
                    "a parameter under a reentrant checkpoint has a hook that waits for its "
                    "`.grad` (DDP, an optimizer in backward): it would run once per loss. "
                    "Checkpoint with use_reentrant=False."
                )
            self._before[id(leaf)] = weakref.ref(leaf), leaf.grad
            leaf.grad = None

    def gradients(self) -> list[tuple[Tensor, Tensor]]:
        alive = (reference() for reference, _ in self._before.values())
        return [(leaf, leaf.grad) for leaf in alive if leaf is not None and leaf.grad is not None]

    def put_back(self) -> None:
        for reference, before in self._before.values():
            leaf = reference()
            if leaf is not None:
                leaf.grad = before


@contextmanager
def _before_each_backward(see: Any) -> Iterator[None]:
    """Show `see` the leaves below each call of `torch.autograd.backward` from within a node."""
    original = torch.autograd.backward

    def watched(tensors: Any, *args: Any, **kwargs: Any) -> None:
        given = [tensors] if isinstance(tensors, Tensor) else tensors
        if all(isinstance(one, Tensor) for one in given):  # ours, by edges, shows its own before
            see(leaves([edge_of(one).node for one in given if one.requires_grad]))
        original(tensors, *args, **kwargs)

    torch.autograd.backward = watched
    try:
        yield
    finally:
        torch.autograd.backward = original


def _with_leaves(plan: Plan, found: dict[GradientEdge, Tensor], rows: Rows) -> Plan:
    known = plan.leaves
    hidden = [
        Stage(_tasks_with(rows[edge]), leaves={edge: leaf})
        for edge, leaf in found.items()
        if edge not in known
    ]
    return replace(plan, stages=[*plan.stages, *hidden])


def _tasks_with(rows: list[Tensor | None]) -> int:
    return sum(1 << task for task, row in enumerate(rows) if row is not None)
