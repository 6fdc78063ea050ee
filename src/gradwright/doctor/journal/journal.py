"""The journal: one record of what a training program did.

Always on: the line journal, the engine calls, the optimizer steps. On in the first steps and
whenever new lines run: the record of operations, and marks on the graph nodes a call frees.

Everything is bounded, however long the program runs: 200,000 places (`places.py`), 150,000
entries per thread (`timeline.py`), 30,000 engine calls and as many steps (`log.py`), 100,000
operations (`operations.py`), 200 threads. That is some 200 MB where all of it is full, and a few
MB in a training program.
"""

import functools
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch.autograd.graph import Node

from gradwright.doctor.journal import modes
from gradwright.doctor.journal.engine import EngineCall, EngineCalls
from gradwright.doctor.journal.monitoring import MonitoringTracer
from gradwright.doctor.journal.operations import LIMIT, Operations
from gradwright.doctor.journal.optimizers import OptimizerSteps
from gradwright.doctor.journal.overrides import Overrides
from gradwright.doctor.journal.places import NOWHERE, Places, Site
from gradwright.doctor.journal.recorder import Recorder
from gradwright.doctor.journal.settrace import SettraceTracer
from gradwright.doctor.journal.signatures import SigningRecorder
from gradwright.doctor.journal.threads import Threads
from gradwright.doctor.journal.timeline import Timeline
from gradwright.doctor.journal.usercode import UserCode

QUIET_STEPS = 3  # steps without a new line after which the costly part rests
QUIET_OPERATIONS = 20_000  # the same for programs that do not step


class Journal:
    """Records from `start` to `stop`; rules read it afterwards."""

    def __init__(self, is_user: UserCode, on_failure: Callable[[BaseException], None]) -> None:
        self.is_user = is_user
        self.places = Places(self._on_new_line)
        self.operations = Operations(is_user)
        self.threads = Threads(self.places)
        self.optimizers = OptimizerSteps(self.threads.running, self._fail)
        self.calls = EngineCalls(self.threads.running, self.optimizers.log, self._fail)
        self.follows_lines = True
        self._on_failure = on_failure
        self._recorders: dict[int, Recorder] = {}
        self._overrides = Overrides(self._recorder_here)
        self._armed = False
        self._compiled = False
        self._quiet = 0
        self._operations_at_new_line = 0
        tracer = MonitoringTracer if hasattr(sys, "monitoring") else SettraceTracer
        self._tracer = tracer(self.places, is_user, self._on_thread, self._fail)
        # the one to suspend where much library code runs: each call there costs it an event
        self._pausing = self._tracer if isinstance(self._tracer, SettraceTracer) else None
        self._compile: Any = None
        self._compile_noted: Any = None
        self._running = False

    def start(self, frame: FrameType | None) -> None:
        """Begin recording; `frame` is the user's frame that asked for it, if there is one."""
        self._running = True
        self.calls.before_call = self._before_call
        self.calls.on_call = self._on_call
        self.operations.on_plenty = self._disarm
        self.optimizers.before_step = self._before_step
        self.optimizers.on_step = self._on_step
        self._compiled = _has_compiled()
        self._compile = torch.compile
        self._compile_noted = functools.wraps(torch.compile)(functools.partial(self._note_compile))
        torch.compile = self._compile_noted
        if not self._compiled:
            self._overrides.start()
        self.calls.start()
        self.optimizers.start()
        if self._another_tracer():
            self.follows_lines = False
            self.threads.begin(Timeline())
        else:
            self.threads.begin(self._tracer.start(frame))
        if self._running:  # else the tracer has failed
            self._arm()

    def stop(self) -> None:
        """Stop recording and put everything back as it was."""
        self._rest()
        if not self._running:
            return
        self._running = False
        self._disarm()
        if self.follows_lines:
            self._tracer.stop()
        self.calls.stop()
        self.optimizers.stop()
        self._overrides.stop()
        if torch.compile is self._compile_noted:
            torch.compile = self._compile
        self.threads.close()

    @property
    def main(self) -> Timeline:
        """The timeline of the thread where an engine call raised last, else of the first one."""
        return self.calls.failed_on or self.threads.first

    def place_of_node(self, made: Node | int) -> int:
        """The place that made a graph node, in whichever thread; NOWHERE if it is not sure.

        A node tells more than its number, which belongs to a node of each thread.
        """
        return self.threads.place_of(made)

    def stack_of_node(self, made: Node | int) -> tuple[Site, ...]:
        """User stack, innermost first, of the line that made a graph node."""
        return self.places.stack(self.place_of_node(made))

    def failing_call(self) -> EngineCall | None:
        """The last outermost engine call that raised."""
        for call in reversed(self.calls.remembered()):
            if call.raised and not call.nested:
                return call
        return None

    # -- what the tracer and the hooks report -------------------------------------------------

    def _on_new_line(self) -> None:
        self._quiet = 0
        self._operations_at_new_line = self.operations.count
        self.operations.rest_at = self.operations.count + LIMIT
        if not self._armed and self._running:
            self._arm()

    def _attend(self) -> None:
        """Be called around engine calls and steps, but only while there is something to do."""
        placed = any(recorder.placed for recorder in list(self._recorders.values()))
        pausing = self._pausing is not None
        attended = pausing or self._armed or placed or self.calls.marking
        self.calls.attended = self.optimizers.attended = attended

    def _before_call(self) -> None:
        """Our own notes are not followed; where nothing was, no line is sure."""
        if self._pausing is None:
            return
        timeline = self.threads.here()
        if timeline is not None and not (self.follows_lines and self._pausing.suspend()):
            timeline.current = NOWHERE

    def _before_step(self) -> None:
        if self._pausing is not None:
            self._pausing.suspend()
        self._rest()

    def _on_step(self) -> None:
        self._rest_if_quiet()
        if self._pausing is not None:
            self._pausing.resume()
        timeline = self.threads.here()
        if self._armed and timeline is not None:
            self._insert(timeline)

    def _on_call(self) -> None:
        if self._pausing is not None:
            self._pausing.resume()
        if not self._armed:
            self._rest()
        elif self.optimizers.count == 0:
            self._rest_if_quiet()
        elif self.operations.count - self._operations_at_new_line > QUIET_OPERATIONS:
            self._disarm()

    def _rest_if_quiet(self) -> None:
        self._quiet += 1
        if self._armed and self._quiet > QUIET_STEPS:
            self._disarm()

    def _on_thread(self, timeline: Timeline) -> None:
        forgotten = self.threads.add(timeline)
        if forgotten is not None:
            self._recorders.pop(forgotten.thread, None)
            if self._pausing is not None:
                self._pausing.forget(forgotten.thread)
        self._recorders.pop(timeline.thread, None)  # of a thread that had the same number
        if self._armed:
            self._insert(timeline)

    def _fail(self, error: BaseException) -> None:
        self.stop()
        self._on_failure(error)

    # -- the costly part ----------------------------------------------------------------------

    def _arm(self) -> None:
        self._armed = True
        self.calls.marking = True
        timeline = self.threads.here()
        if timeline is not None:
            self._insert(timeline)
        self._attend()

    def _disarm(self) -> None:
        self._armed = False
        self.calls.marking = self._calls_share_steps()
        for recorder in list(self._recorders.values()):
            recorder.resting = True  # in other threads it stays in the stack and looks away
        self._rest()
        self._attend()

    def _rest(self) -> None:
        """Take this thread's recorder out of torch's stack, unless it is at work."""
        recorder = self._recorder_here()
        if recorder is not None and recorder.placed and not recorder.inside:
            modes.remove(recorder)
            recorder.placed = False
            self._attend()

    def _recorder_here(self) -> Recorder | None:
        return self._recorders.get(threading.get_ident())

    def _calls_share_steps(self) -> bool:
        """Whether steps have several backwards: then only marks tell which one freed a node."""
        return self.calls.count > 1.5 * max(1, self.optimizers.count)

    def _insert(self, timeline: Timeline) -> None:
        if self._compiled:
            return
        recorder = self._recorders.get(timeline.thread)
        if recorder is None:
            kind = Recorder if timeline is self.threads.first else SigningRecorder
            recorder = kind(self.operations, timeline, self._fail)
            self._recorders[timeline.thread] = recorder
        recorder.resting = False
        if not recorder.inside:
            modes.insert(recorder)
            recorder.placed = True

    def _note_compile(self, *args: Any, **kwargs: Any) -> Any:
        """Dynamo would trace through our mode: from here on operations are not recorded."""
        self._compiled = True
        self._disarm()
        self._overrides.stop()
        return self._compile(*args, **kwargs)

    def _another_tracer(self) -> bool:
        return not hasattr(sys, "monitoring") and sys.gettrace() is not None


def _has_compiled() -> bool:
    """Whether `torch.compile` was at work before: compiled functions may run at any time."""
    dynamo = sys.modules.get("torch._dynamo.eval_frame")
    backends = getattr(dynamo, "cached_backends", None) or {}
    return any(backend is not None for backend in backends.values())
