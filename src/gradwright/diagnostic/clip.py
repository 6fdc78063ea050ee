"""One source line as it is shown: tabs expanded, characters visible, clipped around a column."""

from __future__ import annotations

from dataclasses import dataclass

from gradwright.diagnostic.cells import cell_count
from gradwright.diagnostic.charset import Charset

TAB_CELLS = 4
MOST_CHARACTERS_PER_CELL = 8  # combining characters take no room: a line may have millions


@dataclass(frozen=True, slots=True)
class ShownLine:
    """The text to print for a source line, and where its columns came to stand.

    ``stops[i]`` is the cell at which source column ``first + i`` begins; the last one is the end.
    """

    text: str
    first: int
    stops: tuple[int, ...]

    def cell_at(self, column: int) -> int:
        """The cell where source ``column`` begins; a clipped column is at the nearer edge."""
        return self.stops[min(max(column - self.first, 0), len(self.stops) - 1)]


def show_line(
    source: str, room: int, charset: Charset, focus: tuple[int, int] = (0, 0)
) -> ShownLine:
    """``source`` in at most ``room`` cells, with the columns ``focus`` (start, end) in view."""
    first = _first_column(source, room, charset, focus)
    head = charset.ellipsis if first > 0 else ""
    texts, stops = _fill(source, first, cell_count(head), room, charset)
    tail = ""
    if stops[-1] > room or first + len(texts) < len(source):
        tail = charset.ellipsis
        while texts and stops[-1] + cell_count(tail) > room:
            texts.pop()
            stops.pop()
    return ShownLine(head + "".join(texts) + tail, first, tuple(stops))


def _first_column(source: str, room: int, charset: Charset, focus: tuple[int, int]) -> int:
    """Where the shown part begins: at 0 if ``focus`` is in view then, else a third before it."""
    start, end = focus
    _, stops = _fill(source, 0, 0, room, charset)
    fits = stops[-1] <= room and len(stops) > len(source)
    in_view = len(stops) > end and stops[end] + cell_count(charset.ellipsis) <= room
    return 0 if fits or in_view else max(0, start - room // 3)


def _fill(
    source: str, first: int, cell: int, room: int, charset: Charset
) -> tuple[list[str], list[int]]:
    """The visible characters from column ``first`` until ``room`` is exceeded, and their stops."""
    texts: list[str] = []
    stops = [cell]
    most = MOST_CHARACTERS_PER_CELL * room
    for index in range(first, min(first + most, len(source))):
        char = source[index]
        space = TAB_CELLS - stops[-1] % TAB_CELLS
        texts.append(" " * space if char == "\t" else charset.visible(char))
        stops.append(stops[-1] + cell_count(texts[-1]))
        if stops[-1] > room:
            break
    return texts, stops
