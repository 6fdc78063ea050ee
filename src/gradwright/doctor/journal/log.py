"""A list that forgets its middle: what began a run stays, and what came last."""

import threading
from collections.abc import Iterator
from typing import TypeVar

Entry = TypeVar("Entry")

HEAD = 10_000  # entries kept from the beginning
TAIL = 10_000  # entries kept from the recent past
MOST = HEAD + 2 * TAIL  # the middle is forgotten beyond it


class Log(list[Entry]):
    """Entries in the order they were made, each known by its number; whoever appends trims."""

    __slots__ = ("_trimming", "forgotten")

    def __init__(self) -> None:
        super().__init__()
        self.forgotten = 0
        self._trimming = threading.Lock()

    @property
    def made(self) -> int:
        """How many entries were made."""
        return len(self) + self.forgotten

    def trim(self) -> None:
        """Forget the middle, if there is too much of it."""
        with self._trimming:
            surplus = len(self) - HEAD - TAIL
            if len(self) > MOST:
                del self[HEAD : HEAD + surplus]
                self.forgotten += surplus

    def numbered(self) -> Iterator[tuple[int, Entry]]:
        """The entries that are left, with their numbers."""
        for position, entry in enumerate(self):
            forgotten = self.forgotten if position >= HEAD else 0
            yield position + forgotten, entry

    def number_of(self, entry: Entry) -> int:
        """The number of this very entry, one of the last; -1 if it is not there."""
        position = self._position_of(entry)
        return position + self.forgotten if position >= HEAD else position

    def replace(self, entry: Entry, other: Entry) -> None:
        """Put another entry in the place of this one, if it is there."""
        position = self._position_of(entry)
        if position >= 0:
            self[position] = other

    def at(self, number: int) -> Entry | None:
        """The entry of that number, if it is left."""
        position = number if number < HEAD else max(number - self.forgotten, HEAD)
        known = number < HEAD or number >= HEAD + self.forgotten
        return self[position] if known and position < len(self) else None

    def _position_of(self, entry: Entry) -> int:
        backwards = range(len(self) - 1, -1, -1)
        return next((position for position in backwards if self[position] is entry), -1)
