"""Reading what the user gave: losses, counts, a weighting."""

from collections.abc import Iterable, Mapping

from torch import Tensor

from gradwright.engine import CrossGramianWeighting
from gradwright.engine.steps.groups import check_groups
from gradwright.engine.weights.asking import check_kind
from gradwright.engine.weights.heads import check_heads
from gradwright.loops.accumulation.counts import Count, read_count
from gradwright.loops.accumulation.many_losses import Weighing
from gradwright.loops.errors import WindowError


def read_loss(loss: object, name: str = "the loss") -> Tensor:
    """The loss itself.

    Raises:
        WindowError: it is no real scalar, or has no graph.
    """
    if not isinstance(loss, Tensor):
        raise WindowError(
            f"{name} is a {type(loss).__name__}: it must be a tensor. `.item()` and `float()` drop "
            "the graph."
        )
    if loss.numel() != 1:
        raise WindowError(
            f"{name} has shape {list(loss.shape)}: it must be a scalar, the sum over its terms. "
            'Take `.sum()`, or reduction="sum".'
        )
    if loss.is_complex():
        raise WindowError(f"{name} is complex: it must be real. Take its real part or `abs()`.")
    if not loss.requires_grad:
        raise WindowError(
            f"{name} has no graph: no parameter reaches it. `gradwright doctor` says where the "
            "graph was cut."
        )
    return loss


def read_losses_of_tasks(losses: Mapping[str, Tensor | None]) -> dict[str, Tensor]:
    """The losses that are there.

    Raises:
        WindowError: one is no real scalar, or has no graph.
    """
    return {
        name: read_loss(loss, f"loss {name!r}") for name, loss in losses.items() if loss is not None
    }


def read_counts(
    counts: object, losses: Mapping[str, Tensor | None], present: Iterable[str]
) -> dict[str, Count]:
    """The counts of the losses that are there.

    Raises:
        WindowError: names do not match, or a count is no number, negative or not finite.
    """
    if not isinstance(counts, Mapping):
        raise WindowError(
            f"`count` is a {type(counts).__name__}, but the losses have names: give one count per "
            "loss, {" + ", ".join(f"{name!r}: ..." for name in losses) + "}."
        )
    unknown = [name for name in counts if name not in losses]
    missing = [name for name in present if name not in counts]
    if unknown or missing:
        wrong = [*(f"no count for {name!r}" for name in missing)]
        wrong += [f"a count for {name!r}, which is no loss" for name in unknown]
        raise WindowError(
            f"`count` must have the names of the losses, {', '.join(map(repr, losses))}: there is "
            f"{', and '.join(wrong)}."
        )
    return {name: read_count(counts[name], f"the count of {name!r}") for name in present}


def check_runner(run: object) -> None:
    """Refuse a backward that divides the loss itself.

    Raises:
        WindowError: it is that of an Accelerator which accumulates.
    """
    owner = getattr(run, "__self__", None)
    if not type(owner).__module__.startswith("accelerate."):
        return
    steps = getattr(owner, "gradient_accumulation_steps", 1)
    if steps != 1:
        raise WindowError(
            f"`backward` is that of an Accelerator with gradient_accumulation_steps={steps}, which "
            f"divides each loss by {steps}: the window divides by the count. Make the Accelerator "
            "without it, and keep its accumulate() out of the loop."
        )


def check_weighing(how: Weighing) -> Weighing:
    """Refuse a weighting that a window cannot run, and options that do not suit it.

    Raises:
        WindowError: the method reads several batches.
        SharedError: `shared` does not suit it.
        ValueError: `heads` does not suit it, or the method owns the whole step.
    """
    if how.weighting is not None:
        check_kind(how.weighting)
    if isinstance(how.weighting, CrossGramianWeighting):
        raise WindowError(
            f"`weighting` is {how.weighting._get_name()}, which compares independent batches: a "
            "window makes one of all. Call gradwright.backward with `other`."
        )
    check_heads(how.heads, how.weighting)
    check_groups(how.shared, how.weighting)
    return how
