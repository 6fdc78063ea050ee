"""Runs a method on small problems through `gradwright.backward`, to see what it does."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

import gradwright as gw
from docs.catalogue import Make
from gradwright.engine.weights.bases import CrossGramianWeighting, GroupWeighting, Weighting
from gradwright.weighting.bilevel import BilevelWeighting

STEPS = 3  # the weights of DWA move from the third on


@dataclass(frozen=True)
class Step:
    """What a step of K tasks is to be."""

    rows: Tensor  # the tasks' gradients [task, parameter]
    losses: Tensor  # [task]
    left: Tensor  # part of each loss that the optimizer's step leaves [task]


@dataclass(frozen=True)
class Outcome:
    """What the last of some steps made of its gradients."""

    update: Tensor  # [parameter]
    weights: Tensor | None  # [task]


class Toy(nn.Module):
    """A vector of parameters at 0, and losses that are linear in it."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.vector = nn.Parameter(torch.zeros(size, dtype=torch.float64))

    def losses(self, step: Step) -> Tensor:
        """[task], whose gradients are the rows of the step."""
        return step.losses + step.rows @ self.vector


def outcome(make: Make, steps: list[Step], seed: int = 0) -> Outcome:
    """Train for these steps from a fresh method on; what came of the last."""
    torch.manual_seed(seed)
    method = make(len(steps[0].losses))
    for step in steps:
        found = run(method, step)
    return found


def run(method: nn.Module, step: Step) -> Outcome:
    """One step, and all that the method asks for after it."""
    toy = Toy(step.rows.shape[1])
    weights = _backward(method, toy, step)
    assert toy.vector.grad is not None
    _after(method, step)
    return Outcome(toy.vector.grad, weights)


def _backward(method: nn.Module, toy: Toy, step: Step) -> Tensor | None:
    if isinstance(method, BilevelWeighting):
        return method.backward(toy, lambda: toy.losses(step), lambda: toy.losses(step))
    assert isinstance(method, Weighting)
    reads_several = isinstance(method, CrossGramianWeighting)
    done = gw.backward(
        toy.losses(step),
        weighting=method,
        other=[toy.losses(step), toy.losses(step)] if reads_several else (),
        shared={"trunk": [toy.vector]} if isinstance(method, GroupWeighting) else None,
        heads="unweighted" if isinstance(method, GroupWeighting) else "paper",
    )
    weights = done.weights
    return weights[0] if weights is not None and weights.ndim == 2 else weights


def _after(method: nn.Module, step: Step) -> None:
    """What the end of a step, which is an epoch too, brings to a method."""
    for name, given in (("update", [step.losses * step.left]), ("end_epoch", [])):
        call = getattr(method, name, None)
        if call is not None:
            call(*given)
    for parameter in method.parameters():
        if parameter.grad is not None:
            with torch.no_grad():
                parameter.sub_(0.1 * parameter.grad)
            parameter.grad = None
