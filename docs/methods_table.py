"""Write the tables of methods into docs/methods.md, from what the methods do.

python -m docs.methods_table
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from docs.catalogue import WRAPPERS, Method, methods
from docs.costs import backwards, state
from docs.properties import properties
from gradwright.engine.weights.bases import (
    CrossGramianWeighting,
    GramianLossWeighting,
    GramianWeighting,
    GroupWeighting,
    JacobianWeighting,
    LossWeighting,
    Weighting,
)
from gradwright.weighting.bayes import BayesAgg
from gradwright.weighting.bilevel import BilevelWeighting

PAGE = Path(__file__).with_name("methods.md")
COSTS, PROPERTIES, HEADS = ("costs", "properties", "heads")

READS: dict[type[nn.Module], str] = {
    LossWeighting: "losses",
    GramianWeighting: "Gramian",
    GramianLossWeighting: "Gramian, losses",
    GroupWeighting: "Gramian of each group",
    JacobianWeighting: "rows",
    CrossGramianWeighting: "rows of two batches",
    BilevelWeighting: "validation losses",
    BayesAgg: "features, labels",
}
AS_INSIDE = "what the method inside reads"

COST_TITLES = (
    *("Method", "Reads", "Backwards", "lean", "State", "You also"),
    *("Paper", "Year", "LibMTL", "TorchJD"),
)
PROPERTY_TITLES = (
    *("Method", "Order", "Scale", "Units", "No conflict"),
    *("Shares", "Stationary", "Random"),
)
HEAD_TITLES = ("Method", "paper", "libmtl", "torchjd")


def cost_row(method: Method) -> list[str]:
    """What the method reads and costs, and where it comes from."""
    made = method.make(5)
    paper = f"[{method.title}]({method.link})" if method.title else "baseline"
    return [
        _name(method),
        AS_INSIDE if method.name in WRAPPERS[:-1] else _reads(made),
        backwards(method.make, "rows"),
        backwards(method.make, "lean"),
        state(method.make),
        _asks(made),
        paper,
        str(method.year) if method.year else "",
        method.libmtl,
        method.torchjd,
    ]


def property_row(method: Method) -> list[str]:
    """Which of the named properties the method has."""
    if method.kind is BayesAgg:  # weighs entries of the features' gradient, no tasks
        return [_name(method), *["–"] * (len(PROPERTY_TITLES) - 1)]
    return [_name(method), *properties(method.make).values()]


def head_rows(found: Sequence[Method]) -> list[list[str]]:
    """What each preset does with the heads, of the methods that leave a choice."""
    return [
        [_name(method), made.paper_heads, made.libmtl_heads, made.torchjd_heads]
        for method in found
        if isinstance(made := method.make(5), Weighting)
        and not isinstance(made, LossWeighting | BilevelWeighting)
        and method.name not in WRAPPERS
    ]


def markdown(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [_line(titles), "|" + "---|" * len(titles), *map(_line, rows)]
    return "\n".join(lines) + "\n"


def with_tables(text: str) -> str:
    """`text` with the tables between their marks."""
    torch.set_num_threads(1)
    found = methods()
    text = _between(text, COSTS, markdown(COST_TITLES, [cost_row(each) for each in found]))
    rows = [property_row(each) for each in found]
    text = _between(text, PROPERTIES, markdown(PROPERTY_TITLES, rows))
    return _between(text, HEADS, markdown(HEAD_TITLES, head_rows(found)))


def _reads(method: nn.Module) -> str:
    return next(said for kind, said in READS.items() if isinstance(method, kind))


def _asks(method: nn.Module) -> str:
    """What else the user has to call."""
    asks = []
    if any(True for _ in method.parameters()):
        asks.append("give `parameters()` to the optimizer")
    if hasattr(method, "end_epoch"):
        asks.append("call `end_epoch()`")
    if hasattr(method, "update"):
        asks.append("call `update(losses)` after the step")
    if hasattr(method, "fit"):
        asks.append("call `fit(…)` per epoch")
    return ", ".join(asks)


def _name(method: Method) -> str:
    also = "".join(f", `{alias}`" for alias in method.aliases)
    return f"`{method.name}(UPGrad())`" if method.name in WRAPPERS else f"`{method.name}`{also}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _between(text: str, mark: str, table: str) -> str:
    before, start, rest = text.partition(f"<!-- {mark} -->\n")
    _, end, after = rest.partition(f"<!-- end of {mark} -->\n")
    if not (start and end):
        raise ValueError(f"{PAGE.name} has no place for the {mark}: the two marks are missing.")
    return f"{before}{start}{table}{end}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote {len(methods())} methods into {PAGE.name}")
