"""Two lists of gradients, compared."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gradwright.loops.accumulation.parameters import Trained

Gradients = list[Tensor | None]
"""One per parameter; None stands for zero."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far gradients are from others."""

    difference: float  # |a - b| / |b| over all parameters
    tolerance: float  # what rounding may make of it
    worst: str  # the parameter that differs most
    worst_difference: float  # the same of this parameter alone


def compared(trained: Trained, found: Gradients, expected: Gradients) -> Comparison:
    """How far the gradients found are from those expected."""
    pairs = list(zip(found, expected, strict=True))
    apart = [_distance(a, b) for a, b in pairs]
    lengths = [_distance(b, None) for _, b in pairs]
    worst = max(range(len(apart)), key=apart.__getitem__)
    eps = max((torch.finfo(b.dtype).eps for b in expected if b is not None), default=0.0)
    return Comparison(
        difference=_ratio(_length(apart), _length(lengths)),
        tolerance=min(1000 * eps, 0.1),
        worst=trained.names()[id(trained.tensors[worst])],
        worst_difference=_ratio(apart[worst], lengths[worst]),
    )


def _distance(a: Tensor | None, b: Tensor | None) -> float:
    """|a - b|, where None stands for zero."""
    dense = [t.to_dense().to("cpu", torch.float64) for t in (a, b) if t is not None]
    if not dense:
        return 0.0
    return float((dense[0] - dense[1]).norm() if len(dense) == 2 else dense[0].norm())


def _length(parts: Sequence[float]) -> float:
    return float(torch.tensor(parts, dtype=torch.float64).norm())


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else (float("inf") if part else 0.0)
