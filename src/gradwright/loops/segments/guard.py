"""Holds the parameters still while several backwards add up to the gradient of one window."""

import torch
from torch import Tensor

from gradwright.graph.walk import leaves
from gradwright.loops.errors import SegmentError


class Guard:
    """The parameters that a window's loss reaches, as they were before its first backward."""

    def __init__(self) -> None:
        self._walks = 0
        self._leaves: list[Tensor] = []
        self._versions: list[int] = []
        self._before: list[Tensor | None] = []  # what was in `.grad`

    def note(self, losses: list[Tensor], apart: list[Tensor]) -> None:
        """Remember what the losses reach, the leaves `apart` not counted, as it is now.

        Two segments are looked at: in the first one there may be no state to read yet.
        """
        if self._walks < 2:
            self._walks += 1
            known = {id(leaf) for leaf in (*apart, *self._leaves)}
            roots = [loss.grad_fn for loss in losses if loss.grad_fn is not None]
            new = [leaf for leaf in leaves(roots) if id(leaf) not in known]
            self._leaves += new
            self._before += [_copy(leaf.grad) for leaf in new]
        self._versions = [leaf._version for leaf in self._leaves]

    def check(self) -> None:
        """Refuse an optimizer step inside a window.

        What `run` itself writes, as `nn.Embedding` does with `max_norm`, is none of it: versions
        are noted after a segment ran, and checked before the next one does.

        Raises:
            SegmentError: A parameter was written to since the last segment was handed on.
        """
        for leaf, version in zip(self._leaves, self._versions, strict=True):
            if leaf._version != version:
                raise SegmentError(
                    f"a parameter of shape {list(leaf.shape)} changed between two segments of one "
                    "window, but their losses are weighted for one optimizer step per window: "
                    "call `optimizer.step()` after the loop over the segments, or say "
                    'step="segment".'
                )

    @torch.no_grad()
    def undo(self) -> None:
        """Make each `.grad` what it was before the window."""
        for leaf, before in zip(self._leaves, self._before, strict=True):
            if before is None or leaf.grad is None or leaf.grad.is_sparse:
                leaf.grad = before
            else:
                leaf.grad.copy_(before)


def _copy(gradient: Tensor | None) -> Tensor | None:
    return None if gradient is None else gradient.detach().clone()
