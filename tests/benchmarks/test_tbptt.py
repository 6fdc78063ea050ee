"""The helpers of `benchmarks/tbptt.py`: its loops, its count of bytes, and its goals."""

import pytest
import torch

from benchmarks._saved_bytes import peak_saved_bytes
from benchmarks._tbptt_loops import LOOPS, CellByCell, Recurrent, Work, make
from benchmarks._turns import Turns, ratios_to
from benchmarks.tbptt import judged, relative_error


def tiny(kind: type[Recurrent] = Recurrent) -> Work:
    return make(kind, size=3, hidden=4, rows=2, length=10, dtype=torch.float64)()


@pytest.mark.parametrize("kind", [Recurrent, CellByCell])
def test_every_loop_is_full_bptt_in_one_segment(kind: type[Recurrent]) -> None:
    work = tiny(kind)
    LOOPS["full BPTT"](work, 10)
    reference = work.gradient()
    assert reference.norm() > 0.1
    for name in LOOPS:
        assert relative_error(work, name, 10, reference) < 1e-15, name


def test_loops_differ_as_their_names_say() -> None:
    work = tiny()
    LOOPS["full BPTT"](work, 4)
    reference = work.gradient()
    errors = {name: relative_error(work, name, 4, reference) for name in LOOPS}
    assert errors["exact"] < 1e-12
    assert errors["truncated"] == pytest.approx(errors["by hand"], rel=1e-12)
    assert 1e-3 < errors["truncated"] < errors["mean of means"]


def test_peak_counts_each_storage_once_and_what_is_alive_together() -> None:
    whole = torch.ones(100, dtype=torch.float64)
    weight = torch.ones(100, dtype=torch.float64, requires_grad=True)

    def one(part: torch.Tensor) -> torch.Tensor:
        return (weight[: len(part)] * part).sum()

    assert peak_saved_bytes(lambda: one(whole)) == 800
    assert peak_saved_bytes(lambda: one(whole[:10])) == 800  # the view keeps all of it
    assert peak_saved_bytes(lambda: one(whole[:10].clone())) == 80
    assert peak_saved_bytes(lambda: one(whole) + one(whole[50:])) == 800
    assert peak_saved_bytes(lambda: one(whole) + one(whole.clone())) == 1600


def test_peak_forgets_what_a_backward_freed() -> None:
    weight = torch.ones(100, requires_grad=True)

    def two_backwards() -> None:
        for _ in range(2):
            (weight * torch.ones(100)).sum().backward()

    assert peak_saved_bytes(two_backwards) == 400


def test_turns_come_back_to_the_unit() -> None:
    done: list[str] = []
    turns = Turns({"a": lambda: done.append("a"), "b": lambda: done.append("b")}, "a")
    turns()
    with turns.of("b")():
        turns()
    turns()
    assert done == ["a", "b", "a"]


def test_twice_the_work_takes_twice_the_time() -> None:
    matrix = torch.randn(200, 200)

    def once() -> None:
        for _ in range(10):
            matrix @ matrix

    def twice() -> None:
        once()
        once()

    _, spread = ratios_to("once", {"once": once, "twice": twice}, pairs=9, repeats=2)
    assert list(spread) == ["twice"]
    assert 1.3 < spread["twice"][1] < 3


def test_a_goal_is_met_as_printed() -> None:
    assert judged(1.104, 1.10) == "1.10 met"
    assert judged(1.106, 1.10) == "1.10 missed"
    assert judged(5.0, None) == ""
