"""The summaries as rows of numbers, and as a table to print."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp

import torch

from gradwright.monitor.snapshot import above_diagonal
from gradwright.monitor.summary import Summary

_MOST_LAYERS = 40  # that are printed
_MOST_PAIRS = 5


@dataclass(frozen=True, slots=True)
class LayerRow:
    """One layer, over all pairs of tasks and all recorded steps."""

    layer: str
    steps: int  # at which two tasks or more had a gradient there
    least_cosine: float
    least_tasks: tuple[str, str]  # the pair that had it
    mean_cosine: float
    norm_ratio: float  # longest by shortest gradient, geometric mean over steps
    conflict_share: float  # of the steps, those at which some cosine was below 0


@dataclass(frozen=True, slots=True)
class PairRow:
    """Two tasks in one layer, over all recorded steps."""

    layer: str
    tasks: tuple[str, str]
    steps: int  # at which both had a gradient there
    least_cosine: float
    mean_cosine: float
    norm_ratio: float  # first by second, geometric mean over steps
    conflict_share: float  # of the steps, those at which the cosine was below 0


def layer_rows(summaries: Mapping[str, Summary], tasks: Sequence[str]) -> list[LayerRow]:
    """One row for each layer in which two tasks have met."""
    return [_layer_row(name, one, tasks) for name, one in summaries.items() if one.steps]


def pair_rows(summaries: Mapping[str, Summary], tasks: Sequence[str]) -> list[PairRow]:
    """One row for each layer and pair of tasks that have met there; least mean cosine first."""
    return _sorted_pairs(summaries, tasks, most=len(tasks) ** 2)


def as_text(summaries: Mapping[str, Summary], tasks: Sequence[str]) -> str:
    """The layers as a table, and the pairs that disagree most."""
    rows = layer_rows(summaries, tasks)
    worst = sorted(rows, key=lambda row: row.mean_cosine)[:_MOST_LAYERS]
    lines: list[tuple[str, ...]] = [
        ("layer", "steps", "least", "mean", "norm ratio", "conflict", "least between")
    ]
    lines += [
        (row.layer, *_figures(row), " and ".join(row.least_tasks)) for row in rows if row in worst
    ]
    if len(rows) > len(worst):
        lines.append((f"({len(rows) - len(worst)} more)", *[""] * 6))
    pairs = _sorted_pairs(summaries, tasks, most=_MOST_PAIRS)[:_MOST_PAIRS]
    pairs = [row for row in pairs if row.mean_cosine < 0]
    if pairs:
        lines.append(("pairs most in conflict", *[""] * 6))
        lines += [(row.layer, *_figures(row), " and ".join(row.tasks)) for row in pairs]
    return _aligned(lines)


def _layer_row(name: str, summary: Summary, tasks: Sequence[str]) -> LayerRow:
    n = len(tasks)
    first, second = divmod(int(summary.least.where(_upper(n), torch.inf).argmin()), n)
    counts = above_diagonal(summary.counts).sum()
    return LayerRow(
        layer=name,
        steps=summary.steps,
        least_cosine=float(summary.least[first, second]),
        least_tasks=(tasks[first], tasks[second]),
        mean_cosine=float(above_diagonal(summary.cosines).sum() / counts),
        norm_ratio=exp(summary.log_spreads / summary.steps),
        conflict_share=summary.conflicts / summary.steps,
    )


def _sorted_pairs(
    summaries: Mapping[str, Summary], tasks: Sequence[str], most: int
) -> list[PairRow]:
    """The pairs of each layer, `most` of them with the least mean cosine."""
    rows = (row for name, one in summaries.items() for row in _pair_rows(name, one, tasks, most))
    return sorted(rows, key=lambda row: row.mean_cosine)


def _pair_rows(name: str, summary: Summary, tasks: Sequence[str], most: int) -> list[PairRow]:
    places = ((summary.counts > 0) & _upper(len(tasks))).nonzero()
    first, second = places.T
    least = (summary.cosines[first, second] / summary.counts[first, second]).argsort()[:most]
    met = first[least], second[least]
    counts = summary.counts[met]
    columns = (
        counts,
        summary.least[met],
        summary.cosines[met] / counts,
        (summary.log_ratios[met] / counts).exp(),
        summary.negative[met] / counts,
    )
    return [
        PairRow(name, (tasks[first], tasks[second]), int(steps), least, mean, ratio, share)
        for (first, second), steps, least, mean, ratio, share in zip(
            places[least].tolist(), *(column.tolist() for column in columns), strict=True
        )
    ]


def _upper(n: int) -> torch.Tensor:
    return torch.ones(n, n, dtype=torch.bool).triu(1)


def _figures(row: LayerRow | PairRow) -> tuple[str, ...]:
    return (
        f"{row.steps:,}",
        f"{row.least_cosine:.2f}",
        f"{row.mean_cosine:.2f}",
        f"{row.norm_ratio:.3g}",
        f"{row.conflict_share:.0%}",
    )


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    last = len(widths) - 1
    return "\n".join(
        "  ".join(
            text.ljust(width) if place in (0, last) else text.rjust(width)
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
