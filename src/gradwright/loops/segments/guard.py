"""Holds the parameters still while several backwards add up to the gradient of one window."""

from torch import Tensor

from gradwright.graph.walk import leaves
from gradwright.loops.errors import SegmentError


class Guard:
    """The parameters that a window's loss reaches, as they were before its first backward."""

    def __init__(self) -> None:
        self._versions: list[tuple[Tensor, int]] = []
        self._empty: list[Tensor] = []

    def note(self, losses: list[Tensor], apart: list[Tensor]) -> None:
        """Remember what these losses reach, the leaves `apart` not counted."""
        if self._versions:
            return
        skipped = {id(leaf) for leaf in apart}
        roots = [loss.grad_fn for loss in losses if loss.grad_fn is not None]
        found = [leaf for leaf in leaves(roots) if id(leaf) not in skipped]
        self._versions = [(leaf, leaf._version) for leaf in found]
        self._empty = [leaf for leaf in found if leaf.grad is None]

    def check(self) -> None:
        """Refuse an optimizer step inside a window.

        Raises:
            SegmentError: A parameter has other values than at the first segment.
        """
        for leaf, version in self._versions:
            if leaf._version != version:
                raise SegmentError(
                    f"a parameter of shape {list(leaf.shape)} changed between two segments of one "
                    "window, but their losses are weighted for one optimizer step per window: "
                    "call `optimizer.step()` after the loop over the segments, or say "
                    'step="segment".'
                )

    def undo(self) -> None:
        """Take back what the window wrote, where no gradient was before."""
        for leaf in self._empty:
            leaf.grad = None
