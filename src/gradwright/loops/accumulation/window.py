"""`Window`: the micro-batches of one optimizer step."""

from collections.abc import Mapping
from contextlib import AbstractContextManager

from torch import Tensor
from torch.amp import GradScaler

from gradwright.engine import Weighting
from gradwright.engine.plan.shared import Grouped, Shared
from gradwright.engine.weights.heads import Heads
from gradwright.loops.accumulation.counts import Count, larger, read_count
from gradwright.loops.accumulation.given import (
    check_runner,
    check_weighing,
    read_counts,
    read_loss,
    read_losses_of_tasks,
)
from gradwright.loops.accumulation.many_losses import ManyLosses, Weighing
from gradwright.loops.accumulation.mean import WindowMean
from gradwright.loops.accumulation.one_loss import OneLoss, RunBackward
from gradwright.loops.accumulation.parameters import Model
from gradwright.loops.accumulation.surroundings import Surroundings
from gradwright.loops.errors import WindowError


class Window:
    """The micro-batches of one optimizer step: gradients of sums, and one division at the end.

    Each micro-batch gives the SUM of its losses and how many terms the sum has. `close` divides by
    the number of all terms. So the gradient is that of the mean over the window, however ragged
    the micro-batches are and however many there come.

    Gradients that are in `.grad` before are put aside while the window is open, and added back.
    After `close` the window is empty and can be used again.

    Args:
        model: The module that is trained, or an iterable of its parameters. For a model in DDP or
            FSDP the mean is that over all ranks; the wrapper is found from the module inside, too.
        weighting: For several losses: the method that weighs them, once per window, by the
            gradients of their means over the window; by default these are added up. Several
            losses need memory for one gradient per task, and run in one process only.
        shared: For a weighting: see `gradwright.backward`.
        heads: For a weighting: see `gradwright.backward`.
        scaler: For float16: losses are scaled by it. Call its `unscale_` and `step` after `close`.
        size: How many micro-batches a window will have, if that is known. Sums are divided by a
            power of two near the expected count at once, so that float16 gradients do not
            overflow; without a size the window before also says what to expect.

    Raises:
        WindowError: there are no parameters, or a weighting cannot run in a window.

    An exception in your own code changes nothing: go on, or call `discard`. After one in the middle
    of a backward a part of that micro-batch's gradients is in `.grad`, so that the window takes
    nothing but `discard`, which makes `.grad` what it was before the window.

    Example:
        >>> import torch, gradwright as gw
        >>> from gradwright.loops import Window
        >>> model = torch.nn.Linear(3, 1)
        >>> window = Window(model)
        >>> for rows in (2, 7, 1):
        ...     window.backward(model(torch.ones(rows, 3)).square().sum(), count=rows)
        >>> mean = window.close()
        >>> mean.count, mean.micro_batches
        (10.0, 3)
    """

    def __init__(
        self,
        model: Model,
        *,
        weighting: Weighting | None = None,
        shared: Shared | Grouped = None,
        heads: Heads = "paper",
        scaler: GradScaler | None = None,
        size: int | None = None,
    ) -> None:
        self._how = check_weighing(Weighing(weighting, shared, heads, scaler))
        self._around = Surroundings(model)
        self._size = size
        self._open: OneLoss | ManyLosses | None = None
        self._n = 0
        self._broken = self._unsent = self._closed = False
        self._last_total = 0.0

    def __len__(self) -> int:
        """How many micro-batches have been added."""
        return self._n

    def __bool__(self) -> bool:
        """Always true: `self.window or Window(...)` does not make a new one of an empty one."""
        return True

    def backward(
        self,
        loss: Tensor | Mapping[str, Tensor | None],
        count: Count | Mapping[str, Count],
        *,
        backward: RunBackward | None = None,
    ) -> None:
        """Add the gradients of a micro-batch.

        Args:
            loss: The sum over the terms of this micro-batch, a scalar; for several losses one per
                name, None for a task that is absent.
            count: How many terms the sum has: tokens, rows. A number or a tensor with one entry,
                which stays on its device until `close`. 0 is fine. For several losses by name.
            backward: What runs the backward of one loss, if not `Tensor.backward`: Lightning's
                `manual_backward`, `accelerator.backward`. It gets the loss divided, and must not
                divide it again.

        Raises:
            WindowError: the loss is no scalar or has no graph; a count is missing, negative or not
                finite; names do not match; or parameters or `.grad` have been changed since the
                last micro-batch. Nothing has been added then.
        """
        self._check_whole()
        if isinstance(loss, Mapping):
            self._backward_of_many(loss, count, backward)
        else:
            self._backward_of_one(loss, count, backward)
        self._n += 1
        self._unsent = self._around.deferral.is_on

    def close(self) -> WindowMean:
        """Divide by the number of all terms: `.grad` is now the gradient of the mean.

        Clip, unscale and step after this.

        Returns:
            The mean loss, the number of terms and of micro-batches; for several losses also the
            weights.

        Raises:
            WindowError: nothing was added; parameters or `.grad` have been changed; or the last
                backward was deferred. Where the counts add up to 0, or one that stayed on its
                device was negative or not finite, the window has been discarded.
            LossError: a weighting got gradients that are not finite. Nothing has been written.
        """
        self._check_whole()
        if self._open is None:
            again = " since it was closed" if self._closed else ""
            raise WindowError(
                f"the window is empty: no loss has been added{again}. Call "
                "window.backward(loss, count) for each micro-batch, then close() once."
            )
        self._open.check()
        if self._unsent:
            raise WindowError(
                "the last backward of the window was deferred, so its gradients have not left "
                "this rank. Run the last one outside of window.deferred(). In a loop over "
                "windows(...), run the inner loop to its end, and window.backward in each turn."
            )
        mean = self._closed_mean(self._open)
        self._last_total = mean.count if isinstance(mean.count, float) else 0.0
        self._forget()
        self._closed = True
        return mean

    def discard(self) -> None:
        """Give the window up: `.grad` is what it was before the first backward."""
        if self._open is not None:
            self._open.discard()
            self._around.deferral.forget()
        self._forget()

    def deferred(self) -> AbstractContextManager[None]:
        """Within the block, forwards and backwards exchange no gradients between ranks.

        For all micro-batches of a window but the last, which sends them all. Without DDP or FSDP
        it does nothing.
        """
        return self._around.deferral.on()

    def _backward_of_one(self, loss: Tensor, count: object, run: RunBackward | None) -> None:
        read_loss(loss)
        terms = read_count(count)
        check_runner(run)
        if self._how.weighting is not None:
            raise WindowError(
                "the window has a weighting, but got one loss: give its losses by name, "
                "{'a': loss_a, 'b': loss_b}, and their counts likewise."
            )
        window = self._open
        if window is None:
            self._around.look_at([loss])
            ranks = self._around.ranks
            window = OneLoss(self._around.trained(), self._expected(terms), ranks)
        elif isinstance(window, ManyLosses):
            raise WindowError("the window began with losses by name, and now got a single loss.")
        else:
            window.check()
            self._around.warn_of_batch_norms()
        self._open, self._broken = window, True
        window.backward(loss, terms, run or self._run)
        self._broken = False

    def _backward_of_many(
        self, losses: Mapping[str, Tensor | None], count: object, run: RunBackward | None
    ) -> None:
        present = read_losses_of_tasks(losses)
        terms = read_counts(count, losses, present)
        if run is not None:
            raise WindowError(
                "`backward` is for one loss: several are run by the window, one backward per "
                "task. For float16 give Window the scaler."
            )
        window = self._open
        if window is None:
            self._around.refuse_ranks()
            self._around.look_at(list(present.values()))
            window = ManyLosses(self._around.trained(), self._size or 1, tuple(losses), self._how)
        elif isinstance(window, OneLoss):
            raise WindowError("the window began with a single loss, and now got losses by name.")
        else:
            window.check()
            window.check_tasks(losses)
            self._around.warn_of_batch_norms()
        self._open, self._broken = window, True
        window.backward(present, terms)
        self._broken = False

    def _closed_mean(self, window: OneLoss | ManyLosses) -> WindowMean:
        try:
            return window.close(self._n)
        except WindowError:
            self.discard()
            raise

    def _run(self, loss: Tensor) -> None:
        scaler = self._how.scaler
        (loss if scaler is None else scaler.scale(loss)).backward()

    def _expected(self, count: Count) -> Count:
        """About how many terms the window will have, the same on all ranks."""
        expected, ranks = count * (self._size or 1), self._around.ranks
        if ranks is not None:
            before = self._last_total
            return before / ranks.averaged_by if before else ranks.largest(expected)
        if self._size is None:
            return larger(expected, self._last_total)
        return expected

    def _check_whole(self) -> None:
        if self._broken:
            raise WindowError(
                "a backward of the window failed half-way, so `.grad` has a part of its "
                "gradients: call window.discard() and begin again."
            )

    def _forget(self) -> None:
        self._open, self._n = None, 0
        self._broken = self._unsent = False
