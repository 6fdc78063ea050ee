"""The line tracer for Python 3.12 and later, on `sys.monitoring` (PEP 669)."""

import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from gradwright.doctor.journal.places import NO_CALL, NOWHERE, Places
from gradwright.doctor.journal.timeline import Timeline
from gradwright.doctor.journal.usercode import UserCode


class _Call:
    """A user function on a thread's stack."""

    __slots__ = ("caller", "code", "number", "places")

    def __init__(self, code: CodeType, number: int, caller: int, places: dict[int, int]) -> None:
        self.code = code
        self.number = number
        self.caller = caller
        self.places = places


class _Thread(threading.local):
    """What the callbacks know of the thread they run in."""

    timeline: Timeline | None = None
    stack: list[_Call]


class MonitoringTracer:
    """Follows user lines in every thread and keeps each thread's timeline.

    Library code costs one event per code object: its callback answers DISABLE.
    """

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
        self._thread = _Thread()
        self._calls: dict[tuple[int, int], tuple[int, dict[int, int]]] = {}
        self._instrumented: dict[int, CodeType] = {}
        self._tool: int | None = None

    def start(self, frame: FrameType | None) -> Timeline:
        """Begin with the user functions that are on the stack of `frame` already."""
        monitoring = sys.monitoring  # type: ignore[attr-defined]
        self._tool = next(tool for tool in range(6) if monitoring.get_tool(tool) is None)
        monitoring.use_tool_id(self._tool, "gradwright")
        timeline = self._timeline()
        frames = []
        while frame is not None:
            frames.append(frame)
            frame = frame.f_back
        for outer in reversed(frames):
            if self._is_user(outer.f_code.co_filename):
                self._instrument(outer.f_code)
                self._push(timeline, outer.f_code, outer.f_lineno)
        events = monitoring.events
        for event, callback in (
            (events.PY_START, self._enter),
            (events.PY_RESUME, self._enter),
            (events.PY_THROW, self._enter),
            (events.LINE, self._line),
            (events.PY_RETURN, self._leave),
            (events.PY_YIELD, self._leave),
            (events.PY_UNWIND, self._unwind),
        ):
            monitoring.register_callback(self._tool, event, callback)
        monitoring.set_events(self._tool, events.PY_START | events.PY_THROW | events.PY_UNWIND)
        return timeline

    def stop(self) -> None:
        """Hand the tool number back."""
        if self._tool is None:
            return
        monitoring = sys.monitoring  # type: ignore[attr-defined]
        monitoring.set_events(self._tool, 0)
        for code in self._instrumented.values():
            monitoring.set_local_events(self._tool, code, 0)
        monitoring.free_tool_id(self._tool)
        self._tool = None

    def suspend(self) -> bool:
        """Nothing to do: library code costs nothing here."""
        return True

    def resume(self) -> None:
        """Nothing to do."""

    def forget(self, thread: int) -> None:
        """Nothing to do: what is known of a thread ends with it."""

    def _timeline(self) -> Timeline:
        self._thread.stack = []
        self._thread.timeline = timeline = Timeline()
        return timeline

    def _instrument(self, code: CodeType) -> None:
        monitoring = sys.monitoring  # type: ignore[attr-defined]
        events = monitoring.events
        self._instrumented[id(code)] = code
        local = events.LINE | events.PY_RETURN | events.PY_YIELD | events.PY_RESUME
        monitoring.set_local_events(self._tool, code, local)

    def _push(self, timeline: Timeline, code: CodeType, line: int) -> None:
        caller = timeline.current
        key = (caller, id(code))
        known = self._calls.get(key)
        if known is None:
            known = (self._places.call(caller, code), {})
            if known[0] != NO_CALL:  # else the code may die, and its id belong to another
                self._calls[key] = known
        call = _Call(code, known[0], caller, known[1])
        self._thread.stack.append(call)
        timeline.current = self._place(call, line)

    def _place(self, call: _Call, line: int) -> int:
        if call.number == NO_CALL:
            return call.caller
        place = call.places.get(line, NOWHERE)
        if place == NOWHERE:
            place = call.places[line] = self._places.place(call.number, line)
        return place

    def _enter(self, code: CodeType, offset: int, exception: object = None) -> Any:
        try:
            if id(code) not in self._instrumented:
                if not self._is_user(code.co_filename):
                    return sys.monitoring.DISABLE if exception is None else None  # type: ignore[attr-defined]
                self._instrument(code)
            timeline = self._thread.timeline
            if timeline is None:
                timeline = self._timeline()
                self._on_thread(timeline)
            timeline.flush()
            self._push(timeline, code, code.co_firstlineno)
        except Exception as error:
            self._on_failure(error)
        return None

    def _line(self, code: CodeType, line: int) -> None:
        try:
            thread = self._thread
            timeline = thread.timeline
            if timeline is None:
                return
            timeline.flush()
            stack = thread.stack
            if stack and stack[-1].code is code:
                call = stack[-1]
                timeline.current = call.places.get(line) or self._place(call, line)
        except Exception as error:
            self._on_failure(error)

    def _leave(self, code: CodeType, offset: int, value: object) -> None:
        try:
            thread = self._thread
            timeline = thread.timeline
            if timeline is None:
                return
            timeline.flush()
            if thread.stack and thread.stack[-1].code is code:
                timeline.current = thread.stack.pop().caller
        except Exception as error:
            self._on_failure(error)

    def _unwind(self, code: CodeType, offset: int, exception: BaseException) -> None:
        if id(code) in self._instrumented:
            self._leave(code, offset, None)
