"""From the number of a graph node to the place where it was made, one timeline per thread.

torch numbers the nodes of each thread in the order they are made and lets us read the counter
(`torch._C._autograd._get_sequence_nr`). Whenever user code moves to another line and the counter
has moved, one entry says: the nodes from here on were made at that place.
"""

import threading
from bisect import bisect_right

import torch

from gradwright.doctor.journal.places import NOWHERE

next_node_number = torch._C._autograd._get_sequence_nr

HEAD = 50_000  # entries kept from the beginning: what is built once is built early
TAIL = 50_000  # entries kept from the recent past
MOST = HEAD + 2 * TAIL  # the middle is forgotten beyond it


class Timeline:
    """Entries (first node number, place) of one thread, in order; bounded in length."""

    __slots__ = ("current", "last", "open", "places", "signed", "starts", "thread")

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.starts: list[int] = []
        self.places: list[int] = []
        self.signed: set[int] = set()  # numbers of nodes that carry their place
        self.current = NOWHERE
        self.last: int = next_node_number()
        self.open = True

    def flush(self) -> None:
        """Write down the nodes made since the last entry."""
        now = next_node_number()
        if now != self.last:
            self.move(now)

    def move(self, now: int) -> None:
        """Write down the nodes from the last entry up to number `now`."""
        self.starts.append(self.last)
        self.places.append(self.current)
        self.last = now
        if len(self.starts) > MOST:
            self._forget_the_middle()

    def close(self) -> None:
        """Take no more entries; later nodes were made nowhere."""
        if self.open and threading.get_ident() == self.thread:
            self.flush()
        self.open = False
        self.current = NOWHERE

    def place_of(self, number: int) -> int:
        """The place where node `number` was made, or NOWHERE."""
        if number >= self.last:
            return self.current
        index = bisect_right(self.starts, number) - 1
        return self.places[index] if index >= 0 else NOWHERE

    def visits(self, place: int, since: int = 0) -> list[int]:
        """First node numbers of the stretches at `place` that began at `since` or later."""
        pairs = zip(self.starts, self.places, strict=True)
        return [start for start, where in pairs if where == place and start >= since]

    def _forget_the_middle(self) -> None:
        # in place: the tracers hold these two lists
        del self.starts[HEAD + 1 : -TAIL]
        del self.places[HEAD + 1 : -TAIL]
        self.places[HEAD] = NOWHERE
