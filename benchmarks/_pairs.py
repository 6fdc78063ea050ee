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

    In each of the `pairs` rounds all run in turns, `repeats` calls each, half of the plain ones
    before the condition and half after it. A condition is a context manager: what it does to begin
    and to end is not measured.
    """
    half = (repeats + 1) // 2
    found: dict[str, list[float]] = {name: [] for name in conditions}
    plain_times = []
    for _ in range(pairs):
        for name, condition in conditions.items():
            before = _seconds(work, half)
            with condition():
                seconds = _seconds(work, repeats)
            plain = (before + _seconds(work, half)) / (2 * half)
            found[name].append(seconds / repeats / plain)
            plain_times.append(plain)
    spread = {name: (min(each), statistics.median(each), max(each)) for name, each in found.items()}
    return statistics.median(plain_times), spread


def _seconds(work: Callable[[], object], repeats: int) -> float:
    start = time.process_time()
    for _ in range(repeats):
        work()
    return time.process_time() - start
