"""The journal stays bounded, whatever a program does: each limit is lowered, then exceeded."""

import gc
import sys
import threading
from collections.abc import Iterator

import pytest
import torch

from gradwright.doctor.journal import (
    Journal,
    UserCode,
    engine,
    log,
    operations,
    optimizers,
    places,
    threads,
    timeline,
    usercode,
)
from gradwright.doctor.journal import journal as journal_module

LIMITS = [
    (places, "PLACES", 60),
    (places, "CALLS", 40),
    (places, "CODES", 20),
    (places, "LINES", 80),
    (timeline, "HEAD", 20),
    (timeline, "TAIL", 20),
    (timeline, "MOST", 60),
    (log, "HEAD", 10),
    (log, "TAIL", 10),
    (log, "MOST", 30),
    (engine, "MOST", 30),
    (optimizers, "MOST", 30),
    (operations, "LIMIT", 40),
    (operations, "SWITCHES", 10),
    (journal_module, "LIMIT", 1_000_000),  # so that it does not rest
    (journal_module, "QUIET_STEPS", 1_000_000),
    (journal_module, "QUIET_OPERATIONS", 1_000_000),
    (threads, "THREADS", 5),
    (usercode, "_KNOWN", 30),
]


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Journal]:
    for module, name, value in LIMITS:
        monkeypatch.setattr(module, name, value)
    failures: list[BaseException] = []
    journal = Journal(UserCode(), failures.append)
    journal.operations.rest_at = 1_000_000
    journal.start(sys._getframe())
    yield journal
    journal.stop()
    assert failures == []


def sizes(journal: Journal) -> dict[str, int]:
    tracer = journal._tracer
    calls, steps, ops = journal.calls, journal.optimizers, journal.operations
    return {
        "places": len(journal.places._places),
        "calls of functions": len(journal.places._calls),
        "codes": len(journal.places._codes),
        "lines": len(journal.places._lines_seen),
        "followed codes": len(getattr(tracer, "_followed", ())),
        "timeline": max(len(one.starts) for one in journal.threads.timelines),
        "timelines": len(journal.threads.timelines),
        "threads": len(journal.threads.running)
        + len(journal._recorders)
        + len(getattr(tracer, "_mine", ())),
        "engine calls": len(calls.log),
        "steps": len(steps.log),
        "operations": len(ops.entries),
        "writes": len(ops.writes),
        "escapes": len(ops.escapes),
        "freezes": len(ops.freezes),
        "switches": len(ops.switches),
        "tensors": len(ops._of_tensor),
        "files": len(journal.is_user.known),
    }


BOUNDS = {
    "places": 60,
    "calls of functions": 40,
    "codes": 20,
    "lines": 80,
    "followed codes": 160,  # those that live: 20 above and in 120 records; 240 were made
    "timeline": 61,
    "timelines": 5,
    "threads": 18,
    "engine calls": 30,
    "steps": 30,
    "operations": 40,
    "writes": 80,
    "escapes": 80,
    "freezes": 80,
    "switches": 10,
    "tensors": 60,
    "files": 30,
}


def recurse(x: torch.Tensor, path: int) -> torch.Tensor:
    """A way of recursion that is another one for each path."""
    if path == 0:
        return x.sin()
    if path % 2:
        return recurse(x * 2, path // 2)
    return recurse(x + 1, path // 2)


def test_all_is_bounded(journal: Journal) -> None:
    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.01)
    kept = []
    for turn in range(120):
        space = {"torch": torch, "weight": weight}
        name = f"<generated {turn}>"  # as code generators do: a new file name each time
        exec(compile("def make(x):\n    y = x * 2\n    return y + 1\n", name, "exec"), space)
        loss = recurse(space["make"](weight), turn).sum()  # type: ignore[operator]
        with torch.no_grad():
            torch.zeros(2).add_(1)
            kept.append(torch.zeros(1))
        loss.item()
        loss.backward()
        optimizer.step()
        torch.ones(1).requires_grad_(True)
    for _ in range(8):
        thread = threading.Thread(target=lambda: torch.ones(1) + 1)
        thread.start()
        thread.join()

    gc.collect()  # a function and its globals hold each other
    found = sizes(journal)
    assert {name: size for name, size in found.items() if size > BOUNDS[name]} == {}
    assert journal.calls.count == journal.optimizers.count == 120
    assert found["engine calls"] >= 20 and found["codes"] == 20
    assert journal.calls[0] is not None and journal.calls[119] is not None
    assert journal.calls[60] is None


def test_code_made_anew_in_each_step_is_no_new_line(journal: Journal) -> None:
    new_lines: list[int] = []
    counts = []
    journal.places.on_new_line = lambda: new_lines.append(1)
    for _ in range(10):
        exec(compile("a = 1\nb = 2\n", "<again>", "exec"), {})
        counts.append(len(new_lines))

    assert counts[0] > 0
    assert counts[-1] == counts[2]


def test_what_is_too_much_belongs_to_the_callers_line(journal: Journal) -> None:
    for turn in range(40):
        space: dict[str, object] = {"torch": torch}
        exec(compile("def make(x):\n    return x * 2\n", f"<{turn}>", "exec"), space)
        made = space["make"](torch.ones(1, requires_grad=True))  # type: ignore[operator]
        line = sys._getframe().f_lineno - 1
    journal.stop()

    stack = journal.stack_of_node(made.grad_fn._sequence_nr())
    assert stack[0].line == line and stack[0].file == __file__
