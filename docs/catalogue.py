"""All methods that `gradwright.weighting` exports: how to make each, its paper, names elsewhere."""

import inspect
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from torch import nn

import gradwright.weighting as weightings
from gradwright.engine.weights.bases import Weighting
from gradwright.weighting import UPGrad
from gradwright.weighting.bayes import BayesAgg, BayesHead, RegressionHead

DATA = Path(__file__).with_name("methods.toml")

Make = Callable[[int], nn.Module]
"""Makes the method for a number of tasks."""

# Arguments that cannot be left out; those of single tasks are equal. The warm-ups are short, so
# that three steps are past them. Wrappers hold UPGrad.
MAKERS: dict[str, Make] = {
    "Constant": lambda n: weightings.Constant([1.0] * n),
    "COSMOS": lambda n: weightings.COSMOS([1.0] * n, penalty=1.0),
    "PBI": lambda n: weightings.PBI([1.0] * n),
    "NadirSTCH": lambda n: weightings.NadirSTCH(n, warm_up=0),
    "IGBv1": lambda n: weightings.IGBv1(n, base_epoch=0),
    "Log": lambda n: weightings.Log(UPGrad()),
    "CRMOGM": lambda n: weightings.CRMOGM(UPGrad(), n),
    "Every": lambda n: weightings.Every(UPGrad(), n, steps=1),
    "PerGroup": lambda n: weightings.PerGroup({"trunk": UPGrad()}),
    "AutoLambda": lambda n: weightings.AutoLambda(n, inner_lr=0.1),
    "BayesAgg": lambda n: BayesAgg([RegressionHead(6, n_outputs=1) for _ in range(n)]),
}
WRAPPERS = ("Log", "CRMOGM", "Every", "PerGroup")


@dataclass(frozen=True)
class Method:
    """One method as the table has it."""

    name: str
    aliases: tuple[str, ...]  # other names of the same class
    make: Make
    title: str  # of the paper; empty for a baseline
    year: int
    link: str
    libmtl: str
    torchjd: str

    @property
    def kind(self) -> type[nn.Module]:
        """The class."""
        found: type[nn.Module] = getattr(weightings, self.name)
        return found


def methods() -> list[Method]:
    """Every exported method, in the order of `__all__`.

    Raises:
        KeyError: one has no entry in methods.toml, or an entry without its paper.
    """
    facts = tomllib.loads(DATA.read_text(encoding="utf-8"))
    names = [name for name in weightings.__all__ if _is_method(getattr(weightings, name))]
    own = [name for name in names if getattr(weightings, name).__name__ == name]
    found = []
    for name in own:
        if name not in facts:
            raise KeyError(f"{DATA.name} has no entry for {name}: add its paper")
        aliases = [n for n in names if n != name and _same(n, name)]
        found.append(_method(name, tuple(aliases), facts[name]))
    return found


def _method(name: str, aliases: tuple[str, ...], fact: dict[str, str]) -> Method:
    paper: tuple[str, int, str] = ("", 0, "")
    if "baseline" not in fact:
        paper = (fact["title"], int(fact["year"]), fact["link"])
    make = MAKERS.get(name) or _default(getattr(weightings, name))
    return Method(name, aliases, make, *paper, fact.get("libmtl", ""), fact.get("torchjd", ""))


def _default(kind: type[nn.Module]) -> Make:
    """With the number of tasks where it is needed, else without arguments."""
    parameter = inspect.signature(kind).parameters.get("n_tasks")
    if parameter is not None and parameter.default is inspect.Parameter.empty:
        return kind
    return partial(_without_arguments, kind)


def _without_arguments(kind: type[nn.Module], n_tasks: int) -> nn.Module:
    return kind()


def _is_method(exported: object) -> bool:
    """Whether it is a method: no base class of the engine, no part of another method."""
    if not isinstance(exported, type) or exported.__module__ == Weighting.__module__:
        return False
    return issubclass(exported, Weighting | BayesAgg) and not issubclass(exported, BayesHead)


def _same(one: str, other: str) -> bool:
    return getattr(weightings, one) is getattr(weightings, other)
