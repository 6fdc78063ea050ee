"""How long do the K×K problems of the methods take, and how many times as long in TorchJD?

CPU time, one thread, float64, gradients that conflict. TorchJD 0.18 is only needed for the ratios;
without it, or without one of the solvers it asks for (quadprog, cvxpy, ecos, scipy), there are
none. Goals in ms: NashMTL 0.5 and CAGrad 2 for 11 tasks, PCGrad 2 and UPGrad 5 for 40.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import Tensor

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

Method = Callable[[Tensor], Tensor]

OURS: dict[str, Callable[[int], Method]] = {
    "MGDA": lambda n_tasks: MGDA(),
    "PCGrad": lambda n_tasks: PCGrad(),
    "GradVac": GradVac,
    "CAGrad": lambda n_tasks: CAGrad(),
    "NashMTL": lambda n_tasks: NashMTL(),
    "FairGrad": lambda n_tasks: FairGrad(2.0),
    "AlignedMTL": lambda n_tasks: AlignedMTL(),
    "IMTLG": lambda n_tasks: IMTLG(),
    "UPGrad": lambda n_tasks: UPGrad(),
    "DualProj": lambda n_tasks: DualProj(),
}

GOALS = {("NashMTL", 11): 0.5, ("CAGrad", 11): 2.0, ("PCGrad", 40): 2.0, ("UPGrad", 40): 5.0}


def torchjd_methods(jacobian: Tensor) -> dict[str, Callable[[], Method]]:
    """TorchJD's methods; its NashMTL wants the Jacobian."""
    try:
        from torchjd import aggregation
    except ImportError:
        return {}

    def nash_mtl() -> Method:
        method = aggregation.NashMTL(len(jacobian))
        return lambda gramian: method(jacobian)

    return {
        "MGDA": aggregation.MGDAWeighting,
        "PCGrad": aggregation.PCGradWeighting,
        "GradVac": aggregation.GradVacWeighting,
        "CAGrad": lambda: aggregation.CAGradWeighting(0.5),
        "NashMTL": nash_mtl,
        "FairGrad": lambda: aggregation.FairGradWeighting(2.0),
        "AlignedMTL": aggregation.AlignedMTLWeighting,
        "IMTLG": aggregation.IMTLGWeighting,
        "UPGrad": aggregation.UPGradWeighting,
        "DualProj": aggregation.DualProjWeighting,
    }


class Work:
    """One call of a method, which another one can stand in for."""

    def __init__(self, method: Method, gramian: Tensor) -> None:
        self.method = method
        self.gramian = gramian

    def __call__(self) -> None:
        self.method(self.gramian)

    @contextmanager
    def instead(self, method: Method) -> Iterator[None]:
        ours, self.method = self.method, method
        self()  # the first call of some solvers compiles
        yield
        self.method = ours


def compare(name: str, jacobian: Tensor, pairs: int) -> str:
    """One row of the table."""
    gramian, n_tasks = jacobian @ jacobian.T, len(jacobian)
    work = Work(OURS[name](n_tasks), gramian)
    work()
    conditions: dict[str, Callable[[], AbstractContextManager[None]]] = {}
    make = torchjd_methods(jacobian).get(name)
    try:
        method = make() if make else None
    except ImportError:
        method = None
    if method:
        conditions["torchjd"] = lambda: work.instead(method)
    else:
        conditions["ours again"] = lambda: work.instead(work.method)
    seconds, spread = ratios(work, conditions, pairs, repeats=5)
    goal = GOALS.get((name, n_tasks))
    row = f"{name:12} {n_tasks:3} {1000 * seconds:8.3f} {goal or '':>5}"
    if method:
        least, middle, most = spread["torchjd"]
        row += f"   {middle:8.1f}  ({least:.1f} to {most:.1f})"
    return row


def main() -> None:
    """Prints milliseconds per call, and how many times as long TorchJD takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--only", choices=OURS, help="one method")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print(f"{'method':12} {'K':>3} {'ms':>8} {'goal':>5}   TorchJD, times as long")
    for n_tasks in (3, 11, 40):
        generator = torch.Generator().manual_seed(0)
        shape = (n_tasks, 10 * n_tasks)
        jacobian = torch.randn(shape, generator=generator, dtype=torch.float64)
        for name in [arguments.only] if arguments.only else OURS:
            print(compare(name, jacobian, arguments.pairs), flush=True)


if __name__ == "__main__":
    main()
