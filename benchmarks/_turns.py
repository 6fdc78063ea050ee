"""Several ways to do one thing, taking turns as the conditions of `_pairs.ratios`."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from benchmarks._pairs import ratios

Spread = tuple[float, float, float]
"""The lowest, median and highest ratio."""


class Turns:
    """Does the work of whoever's turn it is; out of turn, that of the unit."""

    def __init__(self, ways: Mapping[str, Callable[[], object]], unit: str) -> None:
        self._ways, self._unit = ways, ways[unit]
        self._now = self._unit

    def __call__(self) -> None:
        self._now()

    def of(self, name: str) -> Callable[[], AbstractContextManager[None]]:
        """A context manager; within its block it is the turn of this way."""

        @contextmanager
        def turn() -> Iterator[None]:
            self._now = self._ways[name]
            try:
                yield
            finally:
                self._now = self._unit

        return turn


def ratios_to(
    unit: str, ways: Mapping[str, Callable[[], object]], pairs: int, repeats: int
) -> tuple[float, dict[str, Spread]]:
    """CPU seconds of the unit, and the ratio of every other way to it; see `ratios`."""
    turns = Turns(ways, unit)
    conditions = {name: turns.of(name) for name in ways if name != unit}
    return ratios(turns, conditions, pairs, repeats)
