"""Places: a line of user code together with the place that called it, kept once each.

A place is a small integer. Its parent is the place of the caller, so one integer stands for a
whole user stack, and remembering where a graph node was made costs no more than its line.

The numbers are bounded. What is too much (code made anew in each step, ever new ways of
recursion) gets the place of its caller: a line further out, never a wrong one.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType

NOWHERE = 0
NO_CALL = 0
PLACES = 200_000  # places remembered
CALLS = 100_000  # pairs of a place and a function called there
CODES = 10_000  # functions; each code object is kept alive
LINES = 200_000  # lines that are known not to be new


@dataclass(frozen=True, slots=True)
class Site:
    """One line of a user stack."""

    file: str
    line: int
    function: str
    code: CodeType


class Places:
    """All places met so far, and the lines never met before."""

    def __init__(self, on_new_line: Callable[[], None] | None = None) -> None:
        self.on_new_line = on_new_line
        self._calls: list[tuple[int, CodeType | None]] = [(NOWHERE, None)]
        self._call_numbers: dict[tuple[int, int], int] = {}
        self._codes: dict[int, CodeType] = {}
        self._places: list[tuple[int, int]] = [(NO_CALL, 0)]
        self._place_numbers: dict[tuple[int, int], int] = {}
        self._lines_seen: set[tuple[str, str, int]] = set()
        self._numbering = threading.Lock()  # two threads must not take the same number

    def call(self, caller: int, code: CodeType) -> int:
        """The number of the function `code` called from the place `caller`.

        NO_CALL where there are too many: then its nodes belong to the caller's line.
        """
        key = (caller, id(code))
        number = self._call_numbers.get(key)
        return self._new_call(key, code) if number is None else number

    def place(self, call: int, line: int) -> int:
        """The number of a line of a called function."""
        key = (call, line)
        number = self._place_numbers.get(key)
        if number is None:
            self._note_line(call, line)
            number = self._new_place(key)
        return number

    def stack(self, place: int) -> tuple[Site, ...]:
        """The user stack of a place, innermost line first."""
        sites: list[Site] = []
        while place != NOWHERE:
            call, line = self._places[place]
            place, code = self._calls[call]
            assert code is not None
            sites.append(Site(code.co_filename, line, code.co_qualname, code))
        return tuple(sites)

    def parent(self, place: int) -> int:
        """The place of the caller."""
        return self._calls[self._places[place][0]][0]

    def common(self, one: int, other: int) -> int:
        """The innermost place that the stacks of two places share, or NOWHERE."""
        outer = set()
        while one != NOWHERE:
            outer.add(one)
            one = self.parent(one)
        while other != NOWHERE and other not in outer:
            other = self.parent(other)
        return other

    def _new_call(self, key: tuple[int, int], code: CodeType) -> int:
        with self._numbering:
            number = self._call_numbers.get(key)
            if number is None:
                if len(self._calls) >= CALLS or not self._keep(code):
                    return NO_CALL
                number = len(self._calls)
                self._calls.append((key[0], code))
                self._call_numbers[key] = number
            return number

    def _new_place(self, key: tuple[int, int]) -> int:
        with self._numbering:
            number = self._place_numbers.get(key)
            if number is None:
                if len(self._places) >= PLACES:
                    return self._calls[key[0]][0]
                number = len(self._places)
                self._places.append(key)
                self._place_numbers[key] = number
            return number

    def _keep(self, code: CodeType) -> bool:
        """Keep `code` alive, so that its id stays its own; False where there are too many."""
        if id(code) not in self._codes:
            if len(self._codes) >= CODES:
                return False
            self._codes[id(code)] = code
        return True

    def _note_line(self, call: int, line: int) -> None:
        code = self._calls[call][1]
        assert code is not None
        # by name: code that is made anew in each step is not new each time
        key = (code.co_filename, code.co_qualname, line)
        if key in self._lines_seen or len(self._lines_seen) >= LINES:
            return
        self._lines_seen.add(key)
        if self.on_new_line is not None:
            self.on_new_line()
