"""Which code objects `sys.monitoring` reports line by line, and under which tool number."""

import dis
import sys
import weakref
from collections.abc import Callable
from types import CodeType


class Followed(dict[int, "Code"]):
    """The code objects that are followed, by their id, as long as they live."""

    def __init__(self) -> None:
        super().__init__()
        self._tool: int | None = None

    def begin(self) -> int:
        """Take a tool number."""
        self._tool = _free_tool()
        sys.monitoring.use_tool_id(self._tool, "gradwright")  # type: ignore[attr-defined]
        return self._tool

    def add(self, code: CodeType) -> None:
        """Have the lines of `code` reported."""
        key = id(code)

        def forget(_: object) -> None:
            if self.get(key) is followed:
                del self[key]

        followed = self[key] = Code(code, forget)
        if self._tool is not None:  # else another thread has just released it
            monitoring = sys.monitoring  # type: ignore[attr-defined]
            events = monitoring.events
            local = events.LINE | events.PY_RETURN | events.PY_YIELD
            monitoring.set_local_events(self._tool, code, local)

    def release(self) -> None:
        """Follow nothing any more and hand the tool number back."""
        if self._tool is None:
            return
        monitoring = sys.monitoring  # type: ignore[attr-defined]
        tool, self._tool = self._tool, None
        monitoring.set_events(tool, 0)
        for followed in list(self.values()):
            code = followed.code()
            if code is not None:
                monitoring.set_local_events(tool, code, 0)
        monitoring.free_tool_id(tool)


class Code:
    """One code object, held weakly: a program may make code without end."""

    __slots__ = ("_lines", "beginning", "begins_once", "code")

    def __init__(self, code: CodeType, on_end: Callable[[object], None]) -> None:
        self.code = weakref.ref(code, on_end)
        self._lines: dict[int, int] = {}
        self.beginning, self.begins_once = _beginning(code)

    def line_at(self, offset: int) -> int:
        """The line of an instruction."""
        line = self._lines.get(offset)
        if line is None:
            line = self._lines[offset] = self._find(offset)
        return line

    def _find(self, offset: int) -> int:
        code = self.code()
        assert code is not None  # it runs
        for start, end, line in code.co_lines():
            if start <= offset < end and line is not None:
                return line
        return code.co_firstlineno


def _beginning(code: CodeType) -> tuple[int, bool]:
    """The first line of the body, and whether it runs at the start of a call and never again."""
    starts = [
        (start, line)
        for start, _, line in code.co_lines()
        if line is not None and start > 0 and line != code.co_firstlineno
    ]
    if not starts:
        return code.co_firstlineno, False
    offset, first = starts[0]
    ranges = sum(line == first for _, line in starts)
    return first, ranges == 1 and offset not in dis.findlabels(code.co_code)  # type: ignore[arg-type]


def _free_tool() -> int:
    """A tool number that no debugger, coverage tool or profiler asks for."""
    monitoring = sys.monitoring  # type: ignore[attr-defined]
    for tool in (3, 4, monitoring.OPTIMIZER_ID):
        if monitoring.get_tool(tool) is None:
            return int(tool)
    raise RuntimeError("no tool number of sys.monitoring is free")
