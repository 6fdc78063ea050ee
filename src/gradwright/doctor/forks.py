"""Forked children are not watched: data loader workers, `os.fork`, multiprocessing."""

import os
from collections.abc import Callable
from functools import cache
from weakref import WeakMethod

_stops: list[WeakMethod[Callable[[], None]]] = []


def call_in_children(stop: Callable[[], None]) -> None:
    """Call the bound method `stop` in every child forked from now on, while its object lives."""
    _register()
    _stops[:] = [other for other in _stops if other() is not None]
    _stops.append(WeakMethod(stop))


@cache
def _register() -> None:
    if hasattr(os, "register_at_fork"):  # nothing forks on Windows
        os.register_at_fork(after_in_child=_stop_all)


def _stop_all() -> None:
    for reference in _stops:
        stop = reference()
        if stop is not None:
            stop()
