"""Amounts of memory as people write them: "2 GB", "512 MiB"."""

import re

from gradwright.loops.errors import SegmentError

_THOUSANDS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_AMOUNT = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*((?:[kmgt]i?)?)b?\s*", re.IGNORECASE)


def read_budget(budget: int | str) -> int:
    """Bytes.

    Raises:
        SegmentError: It is no amount of memory, or less than one byte.

    Example:
        >>> read_budget("2 GB"), read_budget("512 MiB"), read_budget(4096)
        (2000000000, 536870912, 4096)
    """
    if isinstance(budget, str):
        found = _AMOUNT.fullmatch(budget)
        size = float(found[1]) * (_THOUSANDS | _BINARY)[found[2].lower()] if found else 0
    else:
        size = budget if isinstance(budget, int) and not isinstance(budget, bool) else 0
    if size < 1:
        raise SegmentError(
            f"`budget` is {budget!r}: it must be a number of bytes, 1 or more, or a string such as "
            '"512 MB" (millions of bytes) or "2 GiB" (2**30 bytes each).'
        )
    return int(size)


def in_words(size: int) -> str:
    """Three digits and a unit.

    Example:
        >>> in_words(2_000_000_000), in_words(51_200), in_words(17)
        ('2.00 GB', '51.2 kB', '17 B')
    """
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            digits = len(str(size // unit))
            return f"{size / unit:.{3 - digits}f} {name}"
    return f"{size} B"
