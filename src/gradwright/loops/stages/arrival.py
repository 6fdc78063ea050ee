"""The gradient that waits at a leaf, in the layout in which it arrived."""

import torch
from torch import Tensor
from torch.utils.hooks import unserializable_hook


class Arrival:
    """Remembers the layout of a leaf's gradient, which torch gives up for that of the leaf.

    A transposed or expanded gradient goes into other kernels than its contiguous copy, and those
    round differently: 2e-7 in float32.
    """

    def __init__(self, leaf: Tensor) -> None:
        self._stride = leaf.stride()
        self._count = 0
        self._first: Tensor | None = None
        leaf.register_hook(self._note)

    def as_it_came(self, stored: Tensor) -> Tensor:
        """The gradient that torch stored, as it came where it is still the only one, unedited."""
        if self._first is not None and torch.equal(self._first, stored):
            return self._first
        return stored

    def clear(self) -> None:
        """Wait for the next one."""
        self._count, self._first = 0, None

    @unserializable_hook  # type: ignore[untyped-decorator]  # a saved tensor has no cut
    def _note(self, gradient: Tensor) -> None:
        self._count += 1
        only = self._count == 1 and gradient.layout is torch.strided and not gradient.is_meta
        self._first = gradient.detach() if only and gradient.stride() != self._stride else None
