"""Run a failing function under a journal."""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch

from gradwright.doctor.crash import Crash
from gradwright.doctor.journal import Journal, UserCode


def crash_of(program: Callable[[], object]) -> Crash:
    """The crash that `program` ends in."""
    failures: list[BaseException] = []
    journal = Journal(UserCode(), failures.append)
    journal.start(sys._getframe())
    caught: Exception | None = None
    try:
        program()
    except RuntimeError as error:
        caught = error
    finally:
        journal.stop()
        torch.set_grad_enabled(True)
    assert caught is not None, "the program was to fail"
    assert not failures
    return Crash(caught, journal)
