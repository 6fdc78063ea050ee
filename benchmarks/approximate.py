"""How far off are the approximate routes, and what do they cost?

Errors of one step against the exact one: of the Gramian up to a common factor, and of the combined
gradient that a method makes of it, with the cosine between the two. The model has first taken a few
steps on the sum of its losses. "every 10" is the mean over ten steps of training whose weights are
those of the first. The time is that of a step, forward included, in plain steps of
`sum(losses).backward()`: CPU time, one thread, median of interleaved pairs; for "every 10" it is
worked out from the exact one.
"""

import argparse
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import Tensor

import gradwright as gw
from benchmarks._pairs import ratios
from benchmarks._workloads import WORKLOADS, Workload
from gradwright.engine import (
    ApproximationError,
    Features,
    GramianLossWeighting,
    GramianWeighting,
    LastBlock,
    Sketch,
)
from gradwright.engine.approximate.measured import error_of
from gradwright.engine.routes.approximation import Approximation
from gradwright.weighting import MGDA, NashMTL, PCGrad, UPGrad

Method = GramianWeighting | GramianLossWeighting
METHODS: dict[str, Callable[[], Method]] = {
    "UPGrad": UPGrad,
    "MGDA": MGDA,
    "PCGrad": PCGrad,
    "NashMTL": NashMTL,
}
ROUTES = ("last block", "features", "sketch 64", "sketch 16", "every 10")
STALE = 10  # steps


def main() -> None:
    """Print one table per workload."""
    arguments = _arguments()
    torch.set_num_threads(1)
    for name in arguments.workloads:
        print(f"{name}, {arguments.tasks} tasks, after {arguments.steps} steps")
        for line in table(name, arguments):
            print(line, flush=True)


def table(name: str, arguments: argparse.Namespace) -> Iterator[str]:
    """The lines for one workload."""
    yield f"{'':12} {'time':>5}  {'Gramian':>8}  " + "  ".join(
        f"{m + ' (cosine)':>16}" for m in METHODS
    )
    model = trained(name, arguments.tasks, arguments.steps)
    times = _times(model, arguments.pairs) if arguments.pairs else {}
    yield f"{'exact':12} {times.get('exact', float('nan')):5.2f}"
    for route in ROUTES:
        print(f"{name}: {route}", file=sys.stderr)
        errors = {method: list(_errors(model, method, route)) for method in METHODS}
        yield _row(route, times.get(route, float("nan")), errors)


def _row(route: str, time: float, errors: dict[str, list[ApproximationError]]) -> str:
    gramian = statistics.mean(error.gramian or 0.0 for each in errors.values() for error in each)
    cells = []
    for each in errors.values():
        update = statistics.mean(error.update for error in each)
        cosine = statistics.mean(error.cosine for error in each)
        cells.append(f"{update:8.3f} ({cosine:.3f})")
    return f"{route:12} {time:5.2f}  {gramian:8.3f}  " + "  ".join(f"{cell:>16}" for cell in cells)


def trained(name: str, n_tasks: int, steps: int) -> Workload:
    """The model of a workload after some steps of Adam on the sum of its losses."""
    torch.manual_seed(0)
    model = WORKLOADS[name](n_tasks)
    _train(model, steps)
    return model


def _train(model: Workload, steps: int) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.stack(model.losses()).sum().backward()
        optimizer.step()
    optimizer.zero_grad()


def _errors(model: Workload, method: str, route: str) -> Iterator[ApproximationError]:
    if route == "every 10":
        yield from _stale_errors(model, METHODS[method]())
        return
    for seed in range(3 if route.startswith("sketch") else 1):
        features = model.features()
        losses = model.head_losses(features)
        chosen = approximation(route, model, features, seed, measure_error=True)
        torch.manual_seed(seed)
        step = gw.backward(losses, weighting=METHODS[method](), route=chosen)
        model.zero_grad()
        assert step.route.error is not None
        yield step.route.error


def _stale_errors(model: Workload, method: Method) -> Iterator[ApproximationError]:
    """Of the steps after the one whose weights they use; the model comes out as it went in."""
    before = {name: value.clone() for name, value in model.state_dict().items()}
    first = gw.gramian(model.losses(), model.shared())
    torch.manual_seed(0)
    weights = _weigh(method, first, model)
    yield error_of(first, weights, first, weights)
    for _ in range(1, STALE):
        _train(model, 1)
        gramian = gw.gramian(model.losses(), model.shared())
        torch.manual_seed(0)
        yield error_of(first, weights, gramian, _weigh(method, gramian, model))
    model.load_state_dict(before)


def _weigh(method: Method, gramian: Tensor, model: Workload) -> Tensor:
    if isinstance(method, GramianLossWeighting):
        return method(gramian, torch.stack(model.losses()).detach().to(gramian))
    return method(gramian)


def approximation(
    route: str, model: Workload, features: Tensor, seed: int = 0, *, measure_error: bool = False
) -> Approximation:
    """The route of this name for a model that has just returned these features."""
    match route.split():
        case ["sketch", size]:
            generator = torch.Generator().manual_seed(seed)
            return Sketch(int(size), generator, measure_error=measure_error)
        case ["features"]:
            return Features([features], measure_error=measure_error)
    return LastBlock(last_block(model), measure_error=measure_error)


def last_block(model: Workload) -> list[Tensor]:
    """The parameters of the second layers of all experts, or of the last block with weights."""
    trunk = model.trunk
    if hasattr(trunk, "experts"):
        return [p for expert in trunk.experts for p in expert[2].parameters()]  # type: ignore[union-attr]
    blocks = [
        part for part in trunk.children() if sum(p.numel() for p in part.parameters()) > 10_000
    ]
    return list(blocks[-1].parameters())


def _times(model: Workload, pairs: int) -> dict[str, float]:
    """The median time of a step of each route, in plain steps."""
    step: list[Callable[[], object]] = [lambda: torch.stack(model.losses()).sum().backward()]

    def work() -> None:
        model.zero_grad()
        step[-1]()

    @contextmanager
    def of(route: str) -> Iterator[None]:
        step.append(_step(model, route))
        yield
        step.pop()

    conditions: dict[str, Callable[[], AbstractContextManager[object]]] = {
        route: lambda route=route: of(route)  # type: ignore[misc]
        for route in ("exact", *ROUTES)
    }
    _, found = ratios(work, conditions, pairs, repeats=1)
    times = {route: median for route, (_, median, _) in found.items()}
    times["every 10"] = 1 + (times["exact"] - 1) / STALE if "exact" in times else float("nan")
    return times


def _step(model: Workload, route: str) -> Callable[[], object]:
    def step() -> None:
        features = model.features()
        losses = model.head_losses(features)
        if route in ("exact", "every 10"):
            gw.backward(losses, weighting=UPGrad())
        else:
            gw.backward(losses, weighting=UPGrad(), route=approximation(route, model, features))

    return step


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", nargs="+", default=list(WORKLOADS), choices=WORKLOADS)
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--steps", type=int, default=20, help="of training before")
    parser.add_argument("--pairs", type=int, default=5, help="0: no times")
    return parser.parse_args()


if __name__ == "__main__":
    main()
