from collections import namedtuple

import pytest
import torch

from gradwright.doctor.repairs.detaching import detaching_line

Pair = namedtuple("Pair", ["h", "c"])
T = torch.zeros(1)

LINES: list[tuple[object, str | None]] = [
    (T, "s = s.detach()"),
    ((T, T), "s = tuple(part.detach() for part in s)"),
    ([T], "s = [part.detach() for part in s]"),
    ({"h": T}, "s = {key: part.detach() for key, part in s.items()}"),
    (Pair(T, T), None),
    ((T, (T, T)), None),
    ({"h": None}, None),
    ((), None),
    (None, None),
    (3.0, None),
]


@pytest.mark.parametrize(("value", "line"), LINES)
def test_the_line_fits_the_type(value: object, line: str | None) -> None:
    assert detaching_line("s", value, optional=False) == line


def test_a_state_that_may_be_none() -> None:
    line = detaching_line("self.s", T, optional=True)

    assert line == "self.s = self.s.detach() if self.s is not None else None"
