"""Each thread numbers its nodes from 0: a line is only told where it is sure."""

import itertools
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
import torch
from torch import Tensor

from gradwright.doctor.journal import Journal, UserCode, log, threads
from gradwright.doctor.journal.places import NOWHERE, Places
from tests.doctor import commands
from tests.doctor.journal.scenarios import helper, leaf

Result = TypeVar("Result")


def in_a_thread(work: Callable[[], Result]) -> Result:
    """What `work` returns. A new thread has made no node yet."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def watched(work: Callable[[Journal], Result]) -> tuple[Journal, Result]:
    """A journal of `work` alone, in a thread that has made no node before."""

    def run() -> tuple[Journal, Result]:
        failures: list[BaseException] = []
        journal = Journal(UserCode(), failures.append)
        journal.start(sys._getframe())
        try:
            result = work(journal)
        finally:
            journal.stop()
        assert failures == []
        return journal, result

    return in_a_thread(run)


def functions(journal: Journal, tensor: Tensor) -> list[str]:
    """The stack of the node as far as the node tells it."""
    assert tensor.grad_fn is not None
    return [site.function.rpartition(".")[2] for site in journal.stack_of_node(tensor.grad_fn)]


def by_number(journal: Journal, tensor: Tensor) -> list[str]:
    """The stack of the node as far as its number tells it."""
    assert tensor.grad_fn is not None
    stack = journal.stack_of_node(tensor.grad_fn._sequence_nr())
    return [site.function.rpartition(".")[2] for site in stack]


def build() -> Tensor:
    return helper(leaf())


def build_otherwise() -> Tensor:
    return leaf().exp().sin()


def test_a_number_that_one_thread_has_reached_is_sure() -> None:
    def work(_: Journal) -> tuple[Tensor, Tensor]:
        for _turn in range(10):
            mine = leaf().tan()
        return in_a_thread(build), mine

    journal, (built, mine) = watched(work)

    assert by_number(journal, mine)[0] == "work"
    assert by_number(journal, built) == []
    assert functions(journal, built) == ["helper", "build"]


def test_a_node_of_the_first_thread_is_told_from_one_that_is_signed() -> None:
    def work(_: Journal) -> tuple[Tensor, Tensor]:
        return leaf().tan(), in_a_thread(lambda: leaf().sin())

    journal, (mine, other) = watched(work)

    assert mine.grad_fn._sequence_nr() == other.grad_fn._sequence_nr() == 0  # type: ignore[union-attr]
    assert functions(journal, mine)[0] == "work"
    assert functions(journal, other) == ["<lambda>"]


def test_numbers_of_threads_that_run_the_same_code_agree() -> None:
    journal, (one, other) = watched(lambda _: (in_a_thread(build), in_a_thread(build)))

    assert by_number(journal, one) == by_number(journal, other) == ["helper", "build"]


def test_numbers_of_threads_agree_on_what_their_places_have_in_common() -> None:
    def work(function: Callable[[], Tensor]) -> Tensor:
        return function()

    def both(_: Journal) -> list[Tensor]:
        return [in_a_thread(partial(work, each)) for each in (build, build_otherwise)]

    journal, built = watched(both)

    assert [by_number(journal, each) for each in built] == [["work"]] * 2
    assert [functions(journal, each)[0] for each in built] == ["helper", "build_otherwise"]


def test_threads_one_after_the_other_are_told_apart() -> None:
    """They may get the same identifier."""

    def work(_: Journal) -> list[Tensor]:
        return [in_a_thread(build), in_a_thread(build_otherwise)]

    journal, built = watched(work)

    assert [functions(journal, each)[0] for each in built] == ["helper", "build_otherwise"]
    assert [by_number(journal, each) for each in built] == [[], []]


def test_a_thread_without_user_code_is_not_taken_for_another() -> None:
    def work(_: Journal) -> list[Tensor]:
        with ThreadPoolExecutor(1) as pool:
            return [leaf().tan(), pool.submit(torch.sin, leaf()).result()]

    journal, made = watched(work)

    assert [functions(journal, each)[:1] for each in made] == [["work"], []]


def test_a_tensor_changed_in_place_in_a_thread_has_no_line() -> None:
    """Its older part may be of any thread."""

    def work(_: Journal) -> list[Tensor]:
        mine = leaf() * 2
        return [in_a_thread(lambda: mine.mul_(3)), leaf() * 3]

    journal, (changed, _) = watched(work)

    assert functions(journal, changed) == []


def test_signatures_of_an_earlier_journal_mean_nothing() -> None:
    _, built = watched(lambda _: in_a_thread(build))
    later, _ = watched(lambda _: None)

    assert functions(later, built) == []


def test_nodes_of_forgotten_threads_are_made_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "THREADS", 4)

    def work(_: Journal) -> list[Tensor]:
        built = [in_a_thread(build_otherwise)]
        for _turn in range(10):
            in_a_thread(lambda: None)
        return [*built, in_a_thread(build)]

    journal, built = watched(work)

    assert [by_number(journal, each) for each in built] == [[], []]
    assert functions(journal, built[1]) == ["helper", "build"]


def test_training_in_another_thread_is_the_one_that_rules_read() -> None:
    def train() -> None:
        loss = build().sum()
        loss.backward()
        loss.backward()

    def work(_: Journal) -> int:
        with pytest.raises(RuntimeError, match="second time"):
            in_a_thread(train)
        return threading.get_ident()

    journal, first = watched(work)

    assert journal.main.thread != first == journal.threads.first.thread
    call = journal.failing_call()
    assert call is not None
    assert journal.main.place_of(call.roots[0]) == journal.place_of_node(call.roots[0]) != NOWHERE


def at_once(work: Callable[[], object]) -> None:
    """Run `work` in eight threads that interrupt each other all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            for done in [pool.submit(work) for _ in range(8)]:
                done.result()
    finally:
        sys.setswitchinterval(before)


class Interrupted(list[Any]):
    """A list that lets other threads go on when it is asked for its length."""

    def __len__(self) -> int:
        length = super().__len__()
        time.sleep(0.001)
        return length


def test_no_two_places_get_the_same_number() -> None:
    places = Places()
    call = places.call(NOWHERE, build.__code__)
    places._places = Interrupted(places._places)
    numbers: dict[int, int] = {}

    def work() -> None:
        for _turn in range(20):
            line = next(lines)
            numbers[line] = places.place(call, line)

    lines = itertools.count(1)
    at_once(work)

    assert len(numbers) == 160
    assert {line: places.stack(number)[0].line for line, number in numbers.items()} == {
        line: line for line in numbers
    }


def test_calls_in_several_threads_are_numbered_in_order() -> None:
    def work(_: Journal) -> None:
        at_once(lambda: [leaf().sum().backward() for _turn in range(100)])

    journal, _ = watched(work)

    assert [call.index for call in journal.calls.remembered()] == list(range(800))
    assert journal.calls.count == 800 <= log.HEAD


TWICE = """
import concurrent.futures
import torch

weight = torch.nn.Parameter(torch.ones(2))


def encode():
    hidden = weight.exp()
    return hidden


with concurrent.futures.ThreadPoolExecutor(2) as pool:
    features = pool.submit(encode).result()

for turn in range(3):
    loss = (features * turn).sum()
    loss.backward()
"""


@pytest.mark.xfail(reason="the rules ask by number, which is not enough")
def test_a_crash_names_the_line_in_the_workers_function(tmp_path: Path) -> None:
    (tmp_path / "bug.py").write_text(TWICE, encoding="utf-8")

    result = commands.doctor(tmp_path, "bug.py")

    assert result.report is not None
    found = result.report["diagnostics"][0]
    first = min(found["labels"], key=lambda label: label["order"])
    assert (found["code"], first["line"]) == ("GW101", 9)
