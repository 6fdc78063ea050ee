"""Optimizer steps, by torch's global step hooks."""

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import get_ident
from typing import Any

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils.hooks import RemovableHandle

from gradwright.doctor.journal.log import MOST, Log
from gradwright.doctor.journal.places import NOWHERE
from gradwright.doctor.journal.timeline import Timeline, next_node_number


@dataclass(slots=True)
class OptimizerStep:
    """One `optimizer.step()`."""

    index: int  # counts from 0
    place: int
    node: int  # number of the next node: older nodes existed before this step
    optimizer: weakref.ref[torch.optim.Optimizer]


class OptimizerSteps:
    """Counts steps and says which optimizer made them, and where."""

    def __init__(
        self, timelines: Mapping[int, Timeline], on_failure: Callable[[BaseException], None]
    ) -> None:
        self.log: Log[tuple[Any, ...]] = Log()
        self.attended = True  # whether there is anything to do at a step but to write it down
        self.before_step: Callable[[], None] = lambda: None
        self.on_step: Callable[[], None] = lambda: None
        self._timelines = timelines
        self._on_failure = on_failure
        self._handles: list[RemovableHandle] = []

    @property
    def count(self) -> int:
        """How many steps there were."""
        return self.log.made

    def start(self) -> None:
        """Hook every optimizer."""
        self._handles = [
            register_optimizer_step_pre_hook(self._listener()),
            register_optimizer_step_post_hook(self._noter()),
        ]

    def stop(self) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def remembered(self) -> list[OptimizerStep]:
        """All steps still remembered, in order."""
        return [OptimizerStep(index, *entry) for index, entry in self.log.numbered()]

    def _listener(self) -> Callable[[Any, Any, Any], None]:
        def before(optimizer: Any, args: Any, kwargs: Any) -> None:
            if self.attended:
                self._tell_before(optimizer, args, kwargs)

        return before

    def _tell_before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        try:
            # no user code runs inside a plain torch step: nothing to follow there
            plain = type(optimizer).__module__.startswith("torch.optim")
            if plain and len(args) <= 1 and not kwargs:
                self.before_step()
        except Exception as error:
            self._on_failure(error)

    def _noter(self) -> Callable[[Any, Any, Any], None]:
        """Writes down a step. All it needs lies in its cells: every step of the program pays."""
        log, timelines = self.log, self._timelines
        next_number, thread_here, reference = next_node_number, get_ident, weakref.ref

        def after(optimizer: Any, args: Any, kwargs: Any) -> None:
            try:
                timeline = timelines.get(thread_here())
                place = timeline.current if timeline is not None else NOWHERE
                log.append((place, next_number(), reference(optimizer)))
                if len(log) > MOST:
                    log.trim()
                if self.attended:
                    self.on_step()
            except Exception as error:
                self._on_failure(error)

        return after
