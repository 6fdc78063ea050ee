"""The timelines of all threads, and what they say together about a graph node.

torch numbers the nodes of each thread from 0. A node that does not carry its place is told by its
number: the number that one thread alone has reached is sure; where several have, the answer is
what their places have in common. That is often nothing, and never a wrong line.
"""

import functools
import threading

from torch.autograd.graph import Node

from gradwright.doctor.journal.places import NOWHERE, Places
from gradwright.doctor.journal.signatures import signature
from gradwright.doctor.journal.timeline import Timeline
from gradwright.graph import is_accumulator

THREADS = 200  # threads remembered, the first one and the latest


class Threads:
    """Remembers one timeline per thread, of those that have ended as well."""

    def __init__(self, places: Places) -> None:
        self.first = Timeline()  # of the thread that started the journal
        self.timelines: list[Timeline] = []
        self.running: dict[int, Timeline] = {}  # by the number of the thread
        self._places = places
        self._forgotten = 0  # below this number a forgotten thread may have made a node

    def begin(self, first: Timeline) -> None:
        """Start with the thread of `first`."""
        self.first = first
        self.add(first)

    def add(self, timeline: Timeline) -> Timeline | None:
        """A thread begins; the one that is forgotten for it, if there are too many."""
        before = self.running.get(timeline.thread)
        if before is not None and before.last == 0:
            self.timelines.remove(before)  # it has ended and made no node
        self.running[timeline.thread] = timeline
        self.timelines.append(timeline)
        return self._forget(self.timelines[1]) if len(self.timelines) > THREADS else None

    def here(self) -> Timeline | None:
        """The timeline of the thread that asks."""
        return self.running.get(threading.get_ident())

    def close(self) -> None:
        """Take no more entries."""
        for timeline in self.timelines:
            timeline.close()

    def place_of(self, made: Node | int) -> int:
        """The place that made a node, or the node of that number; NOWHERE if it is not sure."""
        if isinstance(made, int):
            return self._agreed(made, self.timelines)
        if is_accumulator(made):
            return NOWHERE
        timeline, place = signature(made)
        if timeline in self.timelines:
            return place
        number = made._sequence_nr()
        return self._agreed(number, [one for one in self.timelines if number not in one.signed])

    def _agreed(self, number: int, timelines: list[Timeline]) -> int:
        """What the threads have in common that may have made a node of that number."""
        if number < self._forgotten:
            return NOWHERE
        reached = [timeline for timeline in timelines if number < timeline.last]
        found = {timeline.place_of(number) for timeline in reached or [self.first]}
        return functools.reduce(self._places.common, found)

    def _forget(self, timeline: Timeline) -> Timeline:
        self.timelines.remove(timeline)
        self._forgotten = max(self._forgotten, timeline.last)
        if self.running.get(timeline.thread) is timeline:
            del self.running[timeline.thread]
        return timeline
