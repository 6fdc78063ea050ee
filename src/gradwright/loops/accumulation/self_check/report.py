"""What `check_window` found, in numbers and in words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gradwright.loops.accumulation.self_check.compared import Comparison


@dataclass(frozen=True, slots=True)
class WindowReport:
    """How far an accumulated window is from the same window in one piece."""

    comparison: Comparison  # of the accumulated gradients with those of the whole
    in_one_batch: bool  # else the whole is the sum of the micro-batches' losses, in one graph
    gives_a_mean: bool | None  # whether `step` returns a mean; None where nobody can say
    batch_norms: tuple[str, ...]  # in train mode
    dropouts: tuple[str, ...]  # in train mode

    @property
    def difference(self) -> float:
        """|accumulated - whole| / |whole| over all parameters."""
        return self.comparison.difference

    @property
    def worst(self) -> str:
        """The parameter that differs most."""
        return self.comparison.worst

    @property
    def is_exact(self) -> bool:
        """Whether the difference is rounding, and the loss a sum."""
        return self.difference <= self.comparison.tolerance and not self.gives_a_mean

    def __str__(self) -> str:
        return "\n".join(_sentences(self))


def _sentences(report: WindowReport) -> Iterator[str]:
    whole = "in one batch" if report.in_one_batch else "in one graph of its micro-batches"
    verdict = "exact" if report.is_exact else "NOT exact"
    found = report.comparison
    yield (
        f"{verdict}: the window differs from the same {whole} by {found.difference:.2g} (rounding "
        f"may make it {found.tolerance:.2g})."
    )
    if found.difference > found.tolerance:
        yield f"Most of it is in {found.worst!r}, which differs by {found.worst_difference:.2g}."
    if report.gives_a_mean:
        yield (
            "`step` returns a mean, not a sum: of a batch that was given twice the loss stayed the "
            'same. Use reduction="sum", or multiply the mean by the count.'
        )
    if report.batch_norms:
        yield (
            f"BatchNorm in train mode ({_listed(report.batch_norms)}) normalises each micro-batch "
            "by itself."
        )
    if report.dropouts:
        yield (
            f"Dropout in train mode ({_listed(report.dropouts)}) drops other entries in the whole: "
            "call eval() to compare."
        )
    if not report.in_one_batch:
        yield "The micro-batches could not be joined: give `whole` to compare with one batch."


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
