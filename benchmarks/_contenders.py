"""Who runs a step of many losses: we and our peers, by name."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import gradwright as gw
from benchmarks._peers import Step, libmtl, torchjd_autogram, torchjd_rows, torchjd_sum
from benchmarks._workloads import Workload
from gradwright import weighting as methods

Kind = Literal["losses", "rows", "lean", "exact"]
"""What it does: one backward, keeps rows, keeps none, or does not say."""

LOSS_METHOD = "UW"  # of those who read the losses alone: all three libraries have it


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to run a step."""

    kind: Kind
    make: Callable[[Workload, str], Step]
    is_ours: bool = False


def plain(work: Workload, method: str) -> Step:
    """What all are compared with."""

    def step() -> None:
        losses = work.losses()
        sum(losses).backward()  # type: ignore[union-attr]

    return step


def _ours(work: Workload, method: str, route: Literal["auto", "rows", "lean"]) -> Step:
    needs_number = method == LOSS_METHOD
    cls = getattr(methods, method)
    weighting = cls(len(work.heads)) if needs_number else cls()

    def step() -> None:
        losses = work.losses()
        gw.backward(losses, weighting=weighting, route=route)

    return step


CONTENDERS = {
    "ours-losses": Contender("losses", partial(_ours, route="auto"), True),
    "libmtl-losses": Contender("losses", libmtl),
    "torchjd-losses": Contender("losses", torchjd_sum),
    "ours-rows": Contender("rows", partial(_ours, route="rows"), True),
    "ours-lean": Contender("lean", partial(_ours, route="lean"), True),
    "ours-auto": Contender("exact", partial(_ours, route="auto"), True),
    "libmtl": Contender("exact", libmtl),
    "torchjd-sequential": Contender("exact", partial(torchjd_rows, chunk=1)),
    "torchjd-vmapped": Contender("exact", partial(torchjd_rows, chunk=None)),
    "torchjd-autogram": Contender("exact", torchjd_autogram),
}


def step_of(name: str, work: Workload, method: str) -> Step:
    """A step of this contender on this workload; `method` is for those who need gradients."""
    contender = CONTENDERS[name]
    return contender.make(work, LOSS_METHOD if contender.kind == "losses" else method)
