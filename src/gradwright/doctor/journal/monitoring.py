"""The line tracer for Python 3.12 and later, on `sys.monitoring` (PEP 669)."""

import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType

from gradwright.doctor.journal.followed import Followed
from gradwright.doctor.journal.places import NO_CALL, NOWHERE, Places
from gradwright.doctor.journal.timeline import Timeline, next_node_number
from gradwright.doctor.journal.usercode import UserCode


class _Call:
    """A user function on a thread's stack."""

    __slots__ = ("caller", "code", "number", "places")

    def __init__(self, code: CodeType, number: int, caller: int, places: dict[int, int]) -> None:
        self.code = code
        self.number = number
        self.caller = caller
        self.places = places


class _Thread:
    """What the callbacks know of a thread."""

    __slots__ = ("stack", "timeline")

    def __init__(self) -> None:
        self.timeline = Timeline()
        self.stack: list[_Call] = []


class _Here(threading.local):
    thread: _Thread | None = None


_BEGINNING = threading.Thread._bootstrap_inner.__code__  # type: ignore[attr-defined]


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
        self._here = _Here()
        self._calls: dict[tuple[int, int], tuple[int, dict[int, int]]] = {}
        self._followed = Followed()

    def start(self, frame: FrameType | None) -> Timeline:
        """Begin with the user functions that are on the stack of `frame` already."""
        tool = self._followed.begin()
        thread = self._here.thread = _Thread()
        for outer in reversed(_callers(frame)):
            if self._is_user(outer.f_code.co_filename):
                self._followed.add(outer.f_code)
                self._push(thread, outer.f_code, outer.f_lineno)
        self._listen(tool)
        return thread.timeline

    def stop(self) -> None:
        """Hand the tool number back."""
        self._followed.release()

    def suspend(self) -> bool:
        """Nothing to do: library code costs nothing here."""
        return True

    def resume(self) -> None:
        """Nothing to do."""

    def forget(self, thread: int) -> None:
        """Nothing to do: what is known of a thread ends with it."""

    def _listen(self, tool: int) -> None:
        monitoring = sys.monitoring  # type: ignore[attr-defined]
        events = monitoring.events
        for event, callback in (
            (events.PY_START, self._enter),
            (events.PY_RESUME, self._resume),
            (events.PY_THROW, self._throw),
            (events.LINE, self._line),
            (events.PY_RETURN, self._leave),
            (events.PY_YIELD, self._leave),
            (events.PY_UNWIND, self._unwind),
        ):
            monitoring.register_callback(tool, event, callback)
        # what an earlier journal answered with DISABLE may be user code for this one
        monitoring.restart_events()
        beginnings = events.PY_START | events.PY_RESUME | events.PY_THROW
        monitoring.set_events(tool, beginnings | events.PY_UNWIND)

    def _push(self, thread: _Thread, code: CodeType, line: int) -> None:
        timeline = thread.timeline
        caller = timeline.current
        key = (caller, id(code))
        known = self._calls.get(key)
        if known is None:
            known = (self._places.call(caller, code), {})
            if known[0] != NO_CALL:  # else the code may die, and its id belong to another
                self._calls[key] = known
        call = _Call(code, known[0], caller, known[1])
        thread.stack.append(call)
        timeline.current = self._place(call, line)

    def _place(self, call: _Call, line: int) -> int:
        if call.number == NO_CALL:
            return call.caller
        place = call.places.get(line, NOWHERE)
        if place == NOWHERE:
            place = call.places[line] = self._places.place(call.number, line)
        return place

    def _enter(self, code: CodeType, offset: int) -> object:
        try:
            if id(code) in self._followed or self._follows(code):
                self._begin(code, code.co_firstlineno)
            elif code is _BEGINNING:
                self._thread_here()
            else:
                return sys.monitoring.DISABLE  # type: ignore[attr-defined]
        except Exception as error:
            self._on_failure(error)
        return None

    def _resume(self, code: CodeType, offset: int) -> object:
        """A generator goes on in the middle of a line: no event says in which."""
        try:
            if id(code) not in self._followed and not self._follows(code):
                return sys.monitoring.DISABLE  # type: ignore[attr-defined]
            self._begin(code, self._followed[id(code)].line_at(offset))
        except Exception as error:
            self._on_failure(error)
        return None

    def _throw(self, code: CodeType, offset: int, exception: BaseException) -> None:
        self._resume(code, offset)  # without its answer: this event cannot be disabled

    def _follows(self, code: CodeType) -> bool:
        """Whether a code object that was not met before is followed from now on."""
        # the methods that `dataclass` writes: ours among them, in every backward and step
        written = code.co_qualname.startswith("__create_fn__.")
        user = not written and self._is_user(code.co_filename)
        if user:
            self._followed.add(code)
        return user

    def _begin(self, code: CodeType, line: int) -> None:
        thread = self._here.thread or self._thread_here()
        thread.timeline.flush()
        self._push(thread, code, line)

    def _thread_here(self) -> _Thread:
        thread = self._here.thread
        if thread is None:
            thread = self._here.thread = _Thread()
            self._on_thread(thread.timeline)
        return thread

    def _line(self, code: CodeType, line: int) -> None:
        try:
            thread = self._here.thread
            if thread is None:
                return
            timeline = thread.timeline
            now = next_node_number()  # as in `flush`: the call alone is a fifth of the event
            if now != timeline.last:
                timeline.move(now)
            stack = thread.stack
            call = stack[-1] if stack and stack[-1].code is code else _find(stack, code)
            if call is None:
                timeline.current = NOWHERE
            else:
                timeline.current = call.places.get(line) or self._place(call, line)
        except Exception as error:
            self._on_failure(error)

    def _leave(self, code: CodeType, offset: int, value: object) -> None:
        try:
            thread = self._here.thread
            if thread is None:
                return
            thread.timeline.flush()
            call = _find(thread.stack, code)
            if call is not None:
                thread.stack.pop()
            thread.timeline.current = call.caller if call is not None else NOWHERE
        except Exception as error:
            self._on_failure(error)

    def _unwind(self, code: CodeType, offset: int, exception: BaseException) -> None:
        if id(code) in self._followed:
            self._leave(code, offset, None)


def _find(stack: list[_Call], code: CodeType) -> _Call | None:
    """The innermost call of `code`, then on top of `stack`; None where its start was not seen.

    What lies above it has left the thread unseen: greenlets exchange the stack.
    """
    for position in range(len(stack) - 1, -1, -1):
        if stack[position].code is code:
            del stack[position + 1 :]
            return stack[position]
    return None


def _free_tool() -> int:
    """A tool number that no debugger, coverage tool or profiler asks for."""
    monitoring = sys.monitoring  # type: ignore[attr-defined]
    for tool in (3, 4, monitoring.OPTIMIZER_ID):
        if monitoring.get_tool(tool) is None:
            return int(tool)
    raise RuntimeError("no tool number of sys.monitoring is free")


def _line_at(code: CodeType, offset: int) -> int:
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return line
    return code.co_firstlineno


def _callers(frame: FrameType | None) -> list[FrameType]:
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames
