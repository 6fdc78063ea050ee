"""Optimizer steps, by torch's global step hooks."""

import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils.hooks import RemovableHandle

from gradwright.doctor.journal.timeline import Timeline, next_node_number

KEPT = 10_000  # steps remembered at either end of a run


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
        self,
        timeline_of_thread: Callable[[], Timeline | None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self.count = 0
        self.first: list[OptimizerStep] = []
        self.recent: deque[OptimizerStep] = deque(maxlen=KEPT)
        self.on_step: Callable[[], None] = lambda: None
        self.suspend: Callable[[], None] = lambda: None
        self.resume: Callable[[], None] = lambda: None
        self._timeline_of_thread = timeline_of_thread
        self._on_failure = on_failure
        self._handles: list[RemovableHandle] = []
        self._numbering = threading.Lock()  # two threads must not take the same number

    def start(self) -> None:
        """Hook every optimizer."""
        self._handles = [
            register_optimizer_step_pre_hook(self._before),
            register_optimizer_step_post_hook(self._after),
        ]

    def stop(self) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def remembered(self) -> list[OptimizerStep]:
        """All steps still remembered, in order."""
        return [*self.first, *self.recent]

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        try:
            # no user code runs inside a plain torch step: nothing to follow there
            plain = type(optimizer).__module__.startswith("torch.optim")
            if plain and len(args) <= 1 and not kwargs:
                self.suspend()
        except Exception as error:
            self._on_failure(error)

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        try:
            timeline = self._timeline_of_thread()
            place = timeline.current if timeline is not None else 0
            with self._numbering:
                step = OptimizerStep(self.count, place, next_node_number(), weakref.ref(optimizer))
                self.count += 1
                (self.first if len(self.first) < KEPT else self.recent).append(step)
            self.on_step()
            self.resume()
        except Exception as error:
            self._on_failure(error)
