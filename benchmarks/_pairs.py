"""Ratios of CPU time, measured side by side in one process: what disturbs one disturbs all."""

import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager


def ratios(
    work: Callable[[], object],
    conditions: Mapping[str, Callable[[], AbstractContextManager[object]]],
    pairs: int,
    repeats: int,
) -> tuple[float, dict[str, tuple[float, float, float]]]:
    """Plain seconds per call, and per condition the lowest, median and highest ratio to plain.

    In each of the `pairs` rounds all run in turns, `repeats` calls each. A condition is a context
    manager: what it does to begin and to end is not measured.
    """
    found: dict[str, list[float]] = {name: [] for name in conditions}
    plain_times = []
    for _ in range(pairs):
        for name, condition in conditions.items():
            plain = _seconds(work, repeats)
            with condition():
                found[name].append(_seconds(work, repeats) / plain)
            plain_times.append(plain / repeats)
    spread = {name: (min(each), statistics.median(each), max(each)) for name, each in found.items()}
    return statistics.median(plain_times), spread


def _seconds(work: Callable[[], object], repeats: int) -> float:
    start = time.process_time()
    for _ in range(repeats):
        work()
    return time.process_time() - start
