"""Tracebacks as they would look without the doctor."""

import os
from collections.abc import Iterator
from itertools import dropwhile
from pathlib import Path
from types import CodeType, TracebackType

_DOCTOR = str(Path(__file__).resolve().parents[1]) + os.sep


def without_doctor(exception: BaseException, program: CodeType | None) -> None:
    """Take the doctor's frames out of the tracebacks of `exception` and of all it came from.

    `program` is the code of the script: frames outside of it are the doctor's way of running it.
    """
    for each in _family(exception):
        frames = _inside(list(_frames(each.__traceback__)), program)
        each.__traceback__ = _chain(_without_dispatch(frames))


def _family(exception: BaseException) -> Iterator[BaseException]:
    """The exception, its causes and contexts, and the members of groups, each once."""
    waiting: list[BaseException | None] = [exception]
    seen: set[int] = set()
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        waiting += [current.__cause__, current.__context__]
        if isinstance(current, BaseExceptionGroup):
            waiting += current.exceptions


def _frames(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _inside(frames: list[TracebackType], program: CodeType | None) -> list[TracebackType]:
    for position, trace in enumerate(frames):
        if trace.tb_frame.f_code is program:
            return frames[position:]
    return list(dropwhile(_is_start, frames))


def _is_start(trace: TracebackType) -> bool:
    """Whether the frame is part of finding the program."""
    return trace.tb_frame.f_code.co_filename.startswith((_DOCTOR, "<frozen importlib"))


def _without_dispatch(frames: list[TracebackType]) -> list[TracebackType]:
    """Leave out the doctor's frames, and torch's way to them.

    A torch function written in Python meets the doctor's function mode by calling
    `handle_torch_function`, and is then called a second time from there: one of the two stays.
    """
    kept: list[TracebackType] = []
    after_doctor = False
    for trace in frames:
        code = trace.tb_frame.f_code
        if code.co_filename.startswith(_DOCTOR):
            if kept and kept[-1].tb_frame.f_code.co_name == "handle_torch_function":
                kept.pop()
            after_doctor = True
            continue
        if after_doctor and kept and kept[-1].tb_frame.f_code is code:
            kept.pop()
        after_doctor = False
        kept.append(trace)
    return kept


def _chain(frames: list[TracebackType]) -> TracebackType | None:
    following = None
    for trace in reversed(frames):
        trace.tb_next = following
        following = trace
    return following
