"""A window of one loss: the gradients of sums add up in `.grad`, and are divided once."""

from collections.abc import Callable

import torch
from torch import Tensor

from gradwright.loops.accumulation.aside import Aside, divide
from gradwright.loops.accumulation.counts import Count, Counts, power_of_two
from gradwright.loops.accumulation.distributed.ranks import Ranks
from gradwright.loops.accumulation.guard import Guard
from gradwright.loops.accumulation.mean import WindowMean
from gradwright.loops.accumulation.parameters import Trained
from gradwright.loops.errors import WindowError

RunBackward = Callable[[Tensor], object]
"""What runs the backward of a loss: `Tensor.backward`, Lightning's `manual_backward`."""


class OneLoss:
    """Gradients of sums, each divided by one power of two so that float16 can hold them.

    Args:
        trained: The parameters. Their `.grad` is put aside here.
        expected: About how many terms the window will have, the same on every rank.
        ranks: Those whose gradients are averaged with ours.
    """

    def __init__(self, trained: Trained, expected: Count, ranks: Ranks | None) -> None:
        self._parameters = trained.tensors
        self._divisor = power_of_two(expected)
        self._ranks = ranks
        self._guard = Guard(trained)
        self._aside = Aside(trained.tensors, copied=ranks is not None)
        self._counts = Counts()
        self._sum: Tensor | None = None

    def check(self) -> None:
        """Refuse to go on where others changed parameters or gradients."""
        self._guard.check_parameters()
        self._guard.check_gradients()

    def backward(self, loss: Tensor, count: Count, run: RunBackward) -> None:
        """Add the gradient of a sum of `count` terms."""
        run(divided(loss, self._divisor))
        self._guard.note_gradients()
        self._counts.add(count)
        self._sum = added(self._sum, loss)

    def close(self, micro_batches: int) -> WindowMean:
        """Divide by the number of terms; nothing is written where there is none."""
        assert self._sum is not None
        total, mean, ranks = self._counts.total(), self._sum, 1.0
        if self._ranks is not None:
            total, of_all = self._ranks.total([total, self._sum])
            mean, ranks = torch.full_like(self._sum, of_all), self._ranks.averaged_by
        if total == 0:
            raise WindowError(
                "the counts of the window add up to 0: there is nothing to take a mean of. The "
                "gradients are those from before the window. Leave the step out, or make the "
                "window longer."
            )
        divide(self._parameters, total / float(self._divisor) / ranks)
        self._aside.add_back()
        return WindowMean(mean / total, total, micro_batches)

    def discard(self) -> None:
        """Make the gradients what they were before the window."""
        self._aside.put_back()


@torch.enable_grad()
def divided(loss: Tensor, divisor: Count) -> Tensor:
    """The loss, to run backward from, in place of itself."""
    return loss / (divisor.to(loss.device) if isinstance(divisor, Tensor) else divisor)


def added(before: Tensor | None, loss: Tensor) -> Tensor:
    """The sum of losses, in float32 or better, without a graph."""
    value = loss.detach().reshape(())
    value = value if value.dtype == torch.float64 else value.float()
    return value if before is None else before + value.to(before.device)
