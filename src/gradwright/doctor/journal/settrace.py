"""The line tracer for Python 3.11, on `sys.settrace`."""

import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from gradwright.doctor.journal.places import NO_CALL, Places
from gradwright.doctor.journal.timeline import Timeline, next_node_number
from gradwright.doctor.journal.usercode import UserCode

Trace = Callable[[FrameType, str, Any], Any]


class SettraceTracer:
    """Follows user lines in every thread and keeps each thread's timeline."""

    def __init__(
        self,
        places: Places,
        is_user: UserCode,
        on_thread: Callable[[Timeline], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._places = places
        self._is_user = is_user
        self._on_thread = on_thread
        self._on_failure = on_failure
        self._running = False
        self._previous: tuple[Any, Any] = (None, None)
        self._adopted: list[tuple[FrameType, Any]] = []
        self._mine: dict[int, Trace] = {}
        self._line_code: CodeType | None = None
        self._paused: set[int] = set()

    def start(self, frame: FrameType | None) -> Timeline:
        """Begin with the user functions that are on the stack of `frame` already."""
        self._running = True
        self._previous = (sys.gettrace(), threading.gettrace())
        timeline = Timeline()
        trace = self._for_thread(timeline)
        for outer in reversed(_callers(frame)):
            if self._is_user(outer.f_code.co_filename):
                self._adopted.append((outer, outer.f_trace))
                local = trace(outer, "call", None)
                outer.f_trace = local
        if self._running:  # else it has failed and was stopped
            threading.settrace(self._new_thread)
            sys.settrace(trace)
        return timeline

    def stop(self) -> None:
        """Give back what was installed before."""
        self._running = False
        self.resume()
        if sys.gettrace() in self._mine.values():
            sys.settrace(self._previous[0])
        if threading.gettrace() == self._new_thread:
            threading.settrace(self._previous[1])
        for frame in _callers(sys._getframe(1)):
            if self._is_mine(frame.f_trace):
                frame.f_trace = None
        for frame, previous in self._adopted:
            if frame.f_trace is None or self._is_mine(frame.f_trace):
                frame.f_trace = previous
        self._adopted.clear()

    def suspend(self) -> bool:
        """Stop following this thread while library code runs.

        False where its lines were not followed: a debugger took over, or what began the last
        pause never ended it.
        """
        thread = threading.get_ident()
        mine = self._mine.get(thread)
        if mine is None or sys.gettrace() is not mine:
            return False
        self._paused.add(thread)
        sys.settrace(None)
        return True

    def resume(self) -> None:
        """Follow this thread again, if it was suspended."""
        if self._paused:
            thread = threading.get_ident()
            if thread in self._paused:
                self._paused.discard(thread)
                if sys.gettrace() is None:
                    sys.settrace(self._mine[thread])

    def forget(self, thread: int) -> None:
        """Keep nothing of a thread that has probably ended."""
        self._mine.pop(thread, None)

    def _new_thread(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not self._running:
            sys.settrace(None)
            return None
        timeline = Timeline()
        trace = self._for_thread(timeline)
        self._on_thread(timeline)
        sys.settrace(trace)
        return trace(frame, event, argument)

    def _for_thread(self, timeline: Timeline) -> Trace:
        is_user, known = self._is_user, self._is_user.known
        new_local, on_failure = self._local, self._on_failure
        locals_of: dict[tuple[int, int], Trace | None] = {}

        def on_call(frame: FrameType, event: str, argument: Any) -> Trace | None:
            code = frame.f_code
            user = known.get(code.co_filename)
            if not user and (user is not None or not is_user(code.co_filename)):
                return None
            try:
                now = next_node_number()
                if now != timeline.last:
                    timeline.move(now)
                if not timeline.open:
                    sys.settrace(None)
                    return None
                key = (timeline.current, id(code))
                local = locals_of.get(key)
                if local is None:
                    local = new_local(timeline, code)
                    if local is None:
                        return None
                    locals_of[key] = local
                return local(frame, "line", None)  # type: ignore[no-any-return]
            except Exception as error:
                on_failure(error)
                return None

        self._mine[timeline.thread] = on_call
        return on_call

    def _local(self, timeline: Timeline, code: CodeType) -> Trace | None:
        """The trace function of one function called from one place; None for one too many."""
        caller = timeline.current
        call = self._places.call(caller, code)
        if call == NO_CALL:
            return None
        new_place, on_failure, counter = self._places.place, self._on_failure, next_node_number
        places: dict[int, int] = {}
        known_place = places.get

        def on_line(frame: FrameType, event: str, argument: Any) -> Trace | None:
            try:
                now = counter()
                if now != timeline.last:
                    timeline.move(now)
                if event == "line":
                    line = frame.f_lineno
                    place = known_place(line)
                    if place is None:
                        timeline.current = caller
                        place = places[line] = new_place(call, line)
                    timeline.current = place
                elif event == "return":
                    timeline.current = caller
                return on_line
            except Exception as error:
                on_failure(error)
                return None

        self._line_code = on_line.__code__
        return on_line

    def _is_mine(self, trace: object) -> bool:
        return trace is not None and getattr(trace, "__code__", None) is self._line_code


def _callers(frame: FrameType | None) -> list[FrameType]:
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames
