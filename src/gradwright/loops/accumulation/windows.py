"""`windows`: the batches of a loader in windows, one optimizer step each."""

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from itertools import chain, islice
from typing import Generic, TypeVar

from torch.amp import GradScaler

from gradwright.engine import Weighting
from gradwright.engine.plan.shared import Grouped, Shared
from gradwright.engine.weights.heads import Heads
from gradwright.loops.accumulation.parameters import Model
from gradwright.loops.accumulation.window import Window
from gradwright.loops.errors import WindowError

Batch = TypeVar("Batch")


class LoadedWindow(Window, Generic[Batch]):
    """A window that yields its micro-batches.

    With DDP or FSDP all but the last run deferred: forward and backward, as the body of the loop
    over them runs while their iterator waits inside `deferred`.
    """

    _micro_batches: Iterator[Batch] = iter(())

    def load(self, micro_batches: Iterator[Batch]) -> None:
        """Take the micro-batches of the next window."""
        self._micro_batches = micro_batches

    def __iter__(self) -> Iterator[Batch]:
        if not self._around.deferral:
            yield from self._micro_batches
            return
        for batch, is_last in _with_end(self._micro_batches):
            if self._around.deferral.is_sharded and self._around.ranks is not None:
                self._around.ranks.go_on(last=is_last)
            with nullcontext() if is_last else self.deferred():
                yield batch

    def begin(self, *, ended: bool) -> None:
        """Agree with the other ranks that a window begins, or that there is none any more."""
        if self._around.ranks is not None:
            self._around.ranks.begin(ended=ended)


def windows(
    loader: Iterable[Batch],
    size: int,
    model: Model,
    *,
    weighting: Weighting | None = None,
    shared: Shared | Grouped = None,
    heads: Heads = "paper",
    scaler: GradScaler | None = None,
) -> Iterator[LoadedWindow[Batch]]:
    """The batches of `loader` in windows of `size` micro-batches; the last may be shorter.

    Each window yields its micro-batches; call its `backward` for each of them and its `close` after
    the last. The next batch is loaded when it is its turn. With DDP or FSDP it is loaded one turn
    ahead, within a window, to know which one is the last: that one alone exchanges gradients.

    Args:
        loader: Any iterable of batches.
        size: Micro-batches per optimizer step.
        model: As for `Window`; with DDP or FSDP the wrapped model.
        weighting: As for `Window`, like all that follow.
        shared: The same.
        heads: The same.
        scaler: The same.

    Raises:
        WindowError: `size` is no number from 1, a window was left without `close` or `discard`, or
            the ranks have different numbers of windows (with FSDP, of micro-batches): then on all
            ranks.

    Example:
        >>> import torch, gradwright as gw
        >>> from gradwright.loops import windows
        >>> model = torch.nn.Linear(3, 1)
        >>> loader = [torch.ones(rows, 3) for rows in (2, 7, 1, 4, 4)]
        >>> for window in windows(loader, size=3, model=model):
        ...     for batch in window:
        ...         window.backward(model(batch).square().sum(), count=len(batch))
        ...     print(window.close().count)
        10.0
        8.0
    """
    if not isinstance(size, int) or size < 1:
        raise WindowError(
            f"`size` is {size!r}: it must be a whole number of micro-batches, from 1."
        )
    window: LoadedWindow[Batch] = LoadedWindow(
        model, weighting=weighting, shared=shared, heads=heads, scaler=scaler, size=size
    )
    return _windows(iter(loader), size, window)


def _windows(
    batches: Iterator[Batch], size: int, window: LoadedWindow[Batch]
) -> Iterator[LoadedWindow[Batch]]:
    for first in batches:
        window.begin(ended=False)
        window.load(islice(chain([first], batches), size))
        yield window
        if len(window):
            raise WindowError(
                f"a window of {len(window)} micro-batches was left without close(): call it after "
                "the loop over the micro-batches, before the optimizer's step. discard() gives a "
                "window up."
            )
    window.begin(ended=True)


def _with_end(items: Iterator[Batch]) -> Iterator[tuple[Batch, bool]]:
    """Each with whether it is the last."""
    for item in items:
        following = next(items, _NONE)
        while following is not _NONE:
            yield item, False
            item, following = following, next(items, _NONE)  # type: ignore[assignment]
        yield item, True


_NONE = object()
