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
    """A user function called from one place: one object for all its calls from there."""

    __slots__ = ("beginning", "caller", "code", "kept", "number", "outer", "places")

    def __init__(self, code: CodeType | None, number: int, caller: int, outer: "_Call | None"):
        self.code = code
        self.number = number
        self.caller = caller  # a place
        self.outer = outer  # the user function that called it
        self.places: dict[int, int] = {}  # by line
        self.beginning = NOWHERE  # the place of its first line
        self.kept = False  # whether the next call from there is this object again


class _Thread(Timeline):
    """A thread's timeline, and the user function that runs in it."""

    __slots__ = ("call",)

    def __init__(self) -> None:
        super().__init__()
        self.call = _NO_FUNCTION


_NO_FUNCTION = _Call(None, NO_CALL, NOWHERE, None)


class _Here(threading.local):
    thread: _Thread | None = None


_BEGINNING = threading.Thread._bootstrap_inner.__code__  # type: ignore[attr-defined]


class MonitoringTracer:
    """Follows user lines in every thread and keeps each thread's timeline.

    Library code costs one event per code object: its callback answers DISABLE. What a user's line,
    call and return cost is paid in every step of the program: hence functions without a name for
    each thought, whose variables lie in cells.
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
        self._calls: dict[tuple[int, int], _Call] = {}  # by place of the caller, and code
        self._latest: dict[int, _Call] = {}  # by place of the caller
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
        return thread

    def stop(self) -> None:
        """Hand the tool number back."""
        self._followed.release()

    def _listen(self, tool: int) -> None:
        monitoring = sys.monitoring  # type: ignore[attr-defined]
        events = monitoring.events
        leave = self._leaver()
        for event, callback in (
            (events.PY_START, self._enterer()),
            (events.PY_RESUME, self._resume),
            (events.PY_THROW, self._throw),
            (events.LINE, self._liner()),
            (events.PY_RETURN, leave),
            (events.PY_YIELD, leave),
            (events.PY_UNWIND, self._unwinder(leave)),
        ):
            monitoring.register_callback(tool, event, callback)
        # what an earlier journal answered with DISABLE may be user code for this one
        monitoring.restart_events()
        beginnings = events.PY_START | events.PY_RESUME | events.PY_THROW
        monitoring.set_events(tool, beginnings | events.PY_UNWIND)

    def _enterer(self) -> Callable[[CodeType, int], object]:
        here, latest = self._here, self._latest

        def enter(code: CodeType, offset: int) -> object:
            try:
                thread = here.thread
                if thread is not None:
                    now = next_node_number()
                    if now != thread.last:
                        thread.move(now)
                    call = latest.get(thread.current)
                    if call is not None and call.code is code:
                        thread.call = call
                        thread.current = call.beginning
                        return None
                return self._first_call(code)
            except Exception as error:
                self._on_failure(error)
                return None

        return enter

    def _liner(self) -> Callable[[CodeType, int], object]:
        here = self._here

        def on_line(code: CodeType, line: int) -> object:
            try:
                thread = here.thread
                if thread is None:
                    return None
                now = next_node_number()
                if now != thread.last:
                    thread.move(now)
                call = thread.call
                if call.code is code and line in call.places:
                    thread.current = call.places[line]
                    return None
                return self._new_line(thread, code, line)
            except Exception as error:
                self._on_failure(error)
                return None

        return on_line

    def _leaver(self) -> Callable[[CodeType, int, object], None]:
        here = self._here

        def leave(code: CodeType, offset: int, value: object) -> None:
            try:
                thread = here.thread
                if thread is None:
                    return
                now = next_node_number()
                if now != thread.last:
                    thread.move(now)
                call = thread.call
                if call.code is not code:
                    call = _find(call, code)
                if call.outer is not None:
                    thread.call = call.outer
                thread.current = call.caller
            except Exception as error:
                self._on_failure(error)

        return leave

    def _unwinder(
        self, leave: Callable[[CodeType, int, object], None]
    ) -> Callable[[CodeType, int, BaseException], None]:
        followed = self._followed

        def unwind(code: CodeType, offset: int, exception: BaseException) -> None:
            if id(code) in followed:
                leave(code, offset, None)

        return unwind

    def _first_call(self, code: CodeType) -> object:
        """A function that was not called from here before."""
        if id(code) in self._followed or self._follows(code):
            self._begin(code, self._followed[id(code)].beginning)
        elif code is _BEGINNING:
            self._thread_here()
        else:
            return sys.monitoring.DISABLE  # type: ignore[attr-defined]
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

    def _new_line(self, thread: _Thread, code: CodeType, line: int) -> object:
        """A line that did not run in this call before, or in a call that was not on top."""
        followed = self._followed.get(id(code))
        if followed is not None and followed.begins_once and line == followed.beginning:
            return sys.monitoring.DISABLE  # type: ignore[attr-defined]  # the call said it
        call = _find(thread.call, code)
        if call is not _NO_FUNCTION:
            thread.call = call
        thread.current = self._place(call, line)
        return None

    def _follows(self, code: CodeType) -> bool:
        """Whether a code object that was not met before is followed from now on."""
        user = self._is_user(code.co_filename) and not _written_by_stdlib(code)
        if user:
            self._followed.add(code)
        return user

    def _begin(self, code: CodeType, line: int) -> None:
        thread = self._here.thread or self._thread_here()
        thread.flush()
        self._push(thread, code, line)

    def _thread_here(self) -> _Thread:
        thread = self._here.thread
        if thread is None:
            thread = self._here.thread = _Thread()
            self._on_thread(thread)
        return thread

    def _push(self, thread: _Thread, code: CodeType, line: int) -> None:
        call = self._calls.get((thread.current, id(code))) or self._new_call(thread, code)
        if call.kept:
            self._latest[thread.current] = call
        thread.call = call
        thread.current = self._place(call, line)

    def _new_call(self, thread: _Thread, code: CodeType) -> _Call:
        caller, outer = thread.current, thread.call
        call = _Call(code, self._places.call(caller, code), caller, outer)
        beginning = self._followed[id(code)].beginning
        call.beginning = (
            caller if call.number == NO_CALL else self._places.place(call.number, beginning)
        )
        # uncounted, the code may die, and its id belong to another; from nowhere, anybody calls
        sure = outer is _NO_FUNCTION or (caller != NOWHERE and outer.number != NO_CALL)
        call.kept = call.number != NO_CALL and sure
        if call.kept:
            self._calls[caller, id(code)] = call
        return call

    def _place(self, call: _Call, line: int) -> int:
        if call.number == NO_CALL:
            return call.caller
        place = call.places.get(line, NOWHERE)
        if place == NOWHERE:
            place = call.places[line] = self._places.place(call.number, line)
        return place


def _find(call: _Call, code: CodeType) -> _Call:
    """The innermost call of `code`, from `call` outwards; `_NO_FUNCTION` if its start was not seen.

    What lies inside it has left the thread unseen: greenlets exchange the stack.
    """
    found: _Call | None = call
    while found is not None and found.code is not code:
        found = found.outer
    return found or _NO_FUNCTION


def _written_by_stdlib(code: CodeType) -> bool:
    """The methods that `dataclass` and `namedtuple` write: ours among them, at each step."""
    return code.co_qualname.startswith("__create_fn__.") or code.co_names == ("_tuple_new",)


def _callers(frame: FrameType | None) -> list[FrameType]:
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames
