"""How long do the K×K problems of the methods take, and how many times as long in TorchJD?

CPU time, one thread, float64, a new Gramian in each call: training never solves one twice. Goals in
ms: NashMTL and FairGrad 0.5 and CAGrad 2 for 11 tasks, PCGrad 2 and UPGrad 5 for 40. What is left
of the equation that NashMTL and FairGrad solve is to be at most 1e-10; it is printed for both
sides. `--spread 100` makes the gradients differ in length by as much.

TorchJD 0.18 is only needed for the ratios; without it, or without one of the solvers it asks for
(quadprog, cvxpy, ecos, scipy), there are none.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import cycle

import torch
from torch import Tensor

from benchmarks._goals import is_met
from benchmarks._pairs import ratios
from gradwright.weighting.aligned_mtl import AlignedMTL
from gradwright.weighting.cagrad import CAGrad
from gradwright.weighting.dualproj import DualProj
from gradwright.weighting.fairgrad import FairGrad
from gradwright.weighting.gradvac import GradVac
from gradwright.weighting.imtlg import IMTLG
from gradwright.weighting.mgda import MGDA
from gradwright.weighting.nash_mtl import NashMTL
from gradwright.weighting.pcgrad import PCGrad
from gradwright.weighting.upgrad import UPGrad


@dataclass(frozen=True, slots=True)
class Problem:
    """Gradients [task, parameter], and their inner products [task, task]."""

    jacobian: Tensor
    gramian: Tensor


Method = Callable[[Problem], Tensor]
"""Weights [task] for a problem."""

ALPHA = 2.0  # of FairGrad

OURS: dict[str, Callable[[int], Callable[[Tensor], Tensor]]] = {
    "MGDA": lambda n_tasks: MGDA(),
    "PCGrad": lambda n_tasks: PCGrad(),
    "GradVac": GradVac,
    "CAGrad": lambda n_tasks: CAGrad(),
    "NashMTL": lambda n_tasks: NashMTL(),
    "FairGrad": lambda n_tasks: FairGrad(ALPHA),
    "AlignedMTL": lambda n_tasks: AlignedMTL(),
    "IMTLG": lambda n_tasks: IMTLG(),
    "UPGrad": lambda n_tasks: UPGrad(),
    "DualProj": lambda n_tasks: DualProj(),
}

GOALS = {
    ("NashMTL", 11): 0.5,
    ("FairGrad", 11): 0.5,
    ("CAGrad", 11): 2.0,
    ("PCGrad", 40): 2.0,
    ("UPGrad", 40): 5.0,
}
MOST_LEFT = 1e-10


def ours(name: str, n_tasks: int) -> Method:
    """Our method of this name."""
    weighting = OURS[name](n_tasks)
    return lambda problem: weighting(problem.gramian)


def torchjd(name: str, n_tasks: int) -> Method:
    """TorchJD's method of this name.

    Raises:
        ImportError: TorchJD is not installed, or a solver that it needs.
    """
    from torchjd import aggregation

    if name == "NashMTL":  # it wants the Jacobian; 0: without clipping, as ours
        nash = aggregation.NashMTL(n_tasks, max_norm=0.0).weighting
        return lambda problem: nash(problem.jacobian)
    arguments = {"CAGrad": (0.5,), "FairGrad": (ALPHA,)}.get(name, ())
    weighting = getattr(aggregation, f"{name}Weighting")(*arguments)
    return lambda problem: weighting(problem.gramian)


def problems(n_tasks: int, spread: float, number: int = 7) -> list[Problem]:
    """Gradients in random directions, of lengths from 1 to `spread`."""
    generator = torch.Generator().manual_seed(0)
    lengths = torch.logspace(0, 1, n_tasks, base=spread, dtype=torch.float64)
    found = []
    for _ in range(number):
        shape = (n_tasks, 10 * n_tasks)
        jacobian = torch.randn(shape, generator=generator, dtype=torch.float64) * lengths[:, None]
        found.append(Problem(jacobian, jacobian @ jacobian.T))
    return found


class Work:
    """One call of a method on the next problem; another method can stand in."""

    def __init__(self, method: Method, given: list[Problem]) -> None:
        self.method = method
        self.given = given
        self._next = cycle(given)

    def __call__(self) -> None:
        self.method(next(self._next))

    @contextmanager
    def instead(self, method: Method) -> Iterator[None]:
        before, self.method = self.method, method
        self()  # the first call of some solvers compiles
        yield
        self.method = before


def left(name: str, method: Method, given: list[Problem]) -> float | None:
    """The most that is left of w (G w)^alpha = 1 in any problem, for the methods that solve it."""
    power = {"NashMTL": 1.0, "FairGrad": ALPHA}.get(name)
    if power is None:
        return None
    worst = 0.0
    for problem in given:
        w = method(problem).double()
        worst = max(worst, float((w ** (1 / power) * (problem.gramian @ w) - 1).abs().max()))
    return worst


def compare(name: str, n_tasks: int, spread: float, pairs: int) -> str:
    """One row of the table."""
    given = problems(n_tasks, spread)
    work = Work(ours(name, n_tasks), given)
    work()
    peer, condition = _peer(name, n_tasks, work)
    seconds, found = ratios(work, {"peer": condition}, pairs, repeats=3 * len(given))
    ms, rest = 1000 * seconds, left(name, work.method, given)
    row = f"{name:12} {n_tasks:3} {ms:8.3f} {_judged(name, n_tasks, ms, rest):10} {_small(rest):8}"
    if peer is not None:
        low, middle, high = found["peer"]
        row += f" {middle:8.1f}  ({low:.1f} to {high:.1f})  {_small(left(name, peer, given))}"
    return row.rstrip()


def _peer(
    name: str, n_tasks: int, work: Work
) -> tuple[Method | None, Callable[[], AbstractContextManager[None]]]:
    try:
        method = torchjd(name, n_tasks)
    except ImportError as error:
        print(f"TorchJD's {name} cannot run: {error}", file=sys.stderr)
        return None, lambda: work.instead(work.method)
    return method, lambda: work.instead(method)


def _judged(name: str, n_tasks: int, ms: float, rest: float | None) -> str:
    goal = GOALS.get((name, n_tasks))
    if goal is None:
        return ""
    met = is_met(ms, goal) and (rest is None or rest <= MOST_LEFT)
    return f"{goal:.1f} {'met' if met else 'missed'}"


def _small(value: float | None) -> str:
    return "" if value is None else f"{value:.0e}"


def main() -> None:
    """Prints milliseconds per call, and how many times as long TorchJD takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--only", choices=OURS, help="one method")
    parser.add_argument("--tasks", type=int, nargs="+", default=[3, 11, 40])
    parser.add_argument("--spread", type=float, default=1.0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print(f"{'method':12} {'K':>3} {'ms':>8} {'goal':10} {'left':8} TorchJD, times as long; left")
    for n_tasks in arguments.tasks:
        for name in [arguments.only] if arguments.only else OURS:
            print(compare(name, n_tasks, arguments.spread, arguments.pairs), flush=True)


if __name__ == "__main__":
    main()
