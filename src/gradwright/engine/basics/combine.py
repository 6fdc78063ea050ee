"""One gradient per parameter from one per task."""

from collections.abc import Iterator, Sequence

from torch import Tensor
from torch.autograd.graph import GradientEdge


def weighted_sum(rows: Sequence[Tensor | None], weights: Sequence[float]) -> Tensor | None:
    """Σ over tasks of weight × row; None where no task has a row.

    The rows are not changed: autograd may have handed the same memory to two parameters.
    """
    result: Tensor | None = None
    for row, weight in zip(rows, weights, strict=True):
        if row is None:
            continue
        if result is None:
            result = row * weight
        elif row.layout == result.layout:
            result.add_(row, alpha=weight)
        else:  # dense and sparse: torch adds them in this order only
            result = result + row * weight if row.is_sparse else row * weight + result
    return result


def combined_rows(
    rows: dict[GradientEdge, list[Tensor | None]], weights: Tensor
) -> Iterator[tuple[GradientEdge, Tensor]]:
    """The gradient of each leaf, Σ over tasks of weight [task] × row; takes the rows out."""
    factors = weights.tolist()
    for edge in list(rows):
        gradient = weighted_sum(rows.pop(edge), factors)
        if gradient is not None:
            yield edge, gradient
