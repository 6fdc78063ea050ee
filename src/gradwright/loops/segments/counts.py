"""How much each segment of a window counts."""

from collections.abc import Sequence
from numbers import Real
from typing import Literal

import torch
from torch import Tensor

from gradwright.loops.errors import SegmentError

Average = Literal["tokens", "segments"]
"""Of the whole window: each token counts the same, or each segment does (a mean of means)."""

Reduction = Literal["mean", "sum"]
"""What the loss of one segment is over its tokens."""


def factors_of_window(
    counts: Sequence[float], average: Average, reduction: Reduction
) -> list[float]:
    """What each segment's loss is multiplied by, for one optimizer step per window: [segment].

    Raises:
        SegmentError: A count is negative, or no segment has a token.
    """
    check_counts(counts)
    total, filled = sum(counts), sum(count > 0 for count in counts)
    if total == 0:
        raise SegmentError(
            f"the {len(counts)} segments of this window count 0 tokens together: there is nothing "
            "to train on. Leave the batch out, or see whether `count` looks at the right mask."
        )
    shares = [
        (count / total if average == "tokens" else 1 / filled) if count else 0.0 for count in counts
    ]
    return [share * _of_mean(count, reduction) for share, count in zip(shares, counts, strict=True)]


def weight_of_segment(
    count: float | Tensor, reduction: Reduction, index: int
) -> tuple[float, float]:
    """Tokens of segment `index` and the factor of its loss, for one optimizer step per segment."""
    (number,) = numbers([count])
    check_counts([number], index)
    return number, _of_mean(number, reduction) if number else 0.0


def numbers(counts: Sequence[float | Tensor]) -> list[float]:
    """The counts as numbers; those on a GPU are waited for once."""
    tensors = [count.detach().reshape(()) for count in counts if isinstance(count, Tensor)]
    if not tensors:
        return [float(count) for count in counts]
    read = iter(torch.stack([t.to(tensors[0].device, torch.float64) for t in tensors]).tolist())
    return [next(read) if isinstance(count, Tensor) else float(count) for count in counts]


def one_count(count: object, index: int) -> float | Tensor:
    """What `count` gave for segment `index`.

    Raises:
        SegmentError: It is no number, and no tensor of one element.
    """
    if isinstance(count, Real) or (isinstance(count, Tensor) and count.numel() == 1):
        return count  # type: ignore[return-value]
    shape = f" of shape {list(count.shape)}" if isinstance(count, Tensor) else ""
    raise SegmentError(
        f"`count` gave a {type(count).__name__}{shape} for segment {index}: it must give one "
        "number, such as `mask.sum()`."
    )


def check_counts(counts: Sequence[float], first: int = 0) -> None:
    """Refuse what cannot be a number of tokens, of the segments from `first` on."""
    for index, count in enumerate(counts, start=first):
        if not 0 <= count < float("inf"):
            raise SegmentError(
                f"`count` gave {count} tokens for segment {index}: it must be 0 or more."
            )


def _of_mean(count: float, reduction: Reduction) -> float:
    """From the segment's loss to its mean."""
    return 1 / count if reduction == "sum" and count else 1.0
