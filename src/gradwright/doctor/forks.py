"""Forked children are not watched: data loader workers, `os.fork`, multiprocessing."""

import os
from collections.abc import Callable
from weakref import WeakMethod

_stops: list[WeakMethod[Callable[[], None]]] = []


def call_in_children(stop: Callable[[], None]) -> None:
    """Call the bound method `stop` in every child forked from now on, while its object lives."""
    if not hasattr(os, "register_at_fork"):  # nothing forks on Windows
        return
    if not _stops:
        os.register_at_fork(after_in_child=_stop_all)
        _stops.append(WeakMethod(stop))  # stays in the list, so the line above runs once
    else:
        _stops[1:] = [other for other in _stops[1:] if other() is not None]
        _stops.append(WeakMethod(stop))


def _stop_all() -> None:
    for reference in _stops:
        stop = reference()
        if stop is not None:
            stop()
