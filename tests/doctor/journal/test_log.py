"""A log forgets its middle, and every entry that is left keeps its number."""

import pytest

from gradwright.doctor.journal import log as log_module
from gradwright.doctor.journal.log import Log


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log[tuple[int, ...]]:
    """Of 100 entries, each its own number, the first ten and the last ten to thirty are left."""
    for name, value in (("HEAD", 10), ("TAIL", 10), ("MOST", 30)):
        monkeypatch.setattr(log_module, name, value)
    log: Log[tuple[int, ...]] = Log()
    for number in range(100):
        log.append((number,))
        log.trim()
    return log


def test_its_ends_stay(log: Log[tuple[int, ...]]) -> None:
    left = [number for number, _ in log.numbered()]

    assert log.made == 100 and 20 <= len(log) <= 30
    assert left == [*range(10), *range(100 - len(left) + 10, 100)]
    assert all(entry == (number,) for number, entry in log.numbered())


def test_entries_are_found_by_number(log: Log[tuple[int, ...]]) -> None:
    left = {number for number, _ in log.numbered()}

    assert {number for number in range(200) if log.at(number) is not None} == left
    assert all(log.at(number) == (number,) for number in left)


def test_numbers_are_found_by_entry(log: Log[tuple[int, ...]]) -> None:
    assert [log.number_of(log[position]) for position in (0, 9, -1)] == [0, 9, 99]
    assert log.number_of((99,)) == -1, "an equal entry is another one"


def test_an_entry_is_replaced(log: Log[tuple[int, ...]]) -> None:
    log.replace(log[-1], (99, 1))
    log.replace((98,), (98, 1))

    assert [entry for _, entry in log.numbered()][-2:] == [(98,), (99, 1)]
