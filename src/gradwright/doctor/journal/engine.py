"""Calls into the autograd engine: where, with which roots, and which nodes they ran through."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import get_ident
from typing import Any

import torch
from torch.autograd.graph import GradientEdge, Node, get_gradient_edge

from gradwright.doctor.journal.log import MOST, Log
from gradwright.doctor.journal.notes import notes_of
from gradwright.doctor.journal.places import NOWHERE
from gradwright.doctor.journal.timeline import Timeline, next_node_number
from gradwright.graph import edges_of, engine_order, is_accumulator, reachable

MARK = (
    "gradwright"  # key in Node.metadata: which journal, and the last engine call that ran the node
)
_graph_task = torch._C._current_graph_task_id  # -1 outside of the engine, in every thread
_Undisturbed = torch._C.DisableTorchFunction  # a look at a tensor is no business of its subclass
_modes_at_work = torch._C._len_torch_function_stack

_Entry = tuple[Any, ...]  # an engine call without its index


@dataclass(slots=True)
class EngineCall:
    """One `backward` or `grad`."""

    index: int  # counts from 0
    step: int  # optimizer steps finished before it
    place: int
    node: int  # number of the next node when it was called: older nodes existed already
    roots: tuple[int, ...]  # node numbers; -1 for a root without a graph
    retain_graph: bool
    create_graph: bool
    accumulate: bool  # `backward`, or `grad`
    recording: bool  # grad mode at the call
    nested: bool  # called from within another engine call (reentrant checkpointing)
    marked: bool  # whether the nodes it ran through carry its index
    raised: bool = False


class EngineCalls:
    """Stands in for `torch.autograd._engine_run_backward`, through which every call passes."""

    started = 0  # how many there were in this process: marks of an earlier one mean nothing

    def __init__(
        self,
        timelines: Mapping[int, Timeline],
        steps: Log[Any],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self.log: Log[_Entry] = Log()
        self.marking = True
        self.failed_on: Timeline | None = None  # of the thread where a call raised last
        self.attended = True  # whether there is anything to do at a call but to write it down
        self.before_call: Callable[[], None] = lambda: None
        self.on_call: Callable[[], None] = lambda: None
        self._timelines = timelines
        self._steps = steps
        self._on_failure = on_failure
        self._original: Callable[..., Any] | None = None
        self._run: Callable[..., Any] | None = None
        self._stopped = False
        self._remembered: list[EngineCall] = []
        self._remembered_at = -1  # how many calls there were then

    @property
    def count(self) -> int:
        """How many calls there were."""
        return self.log.made

    def start(self) -> None:
        """Take the engine's place."""
        EngineCalls.started += 1
        self._original = torch.autograd._engine_run_backward  # type: ignore[attr-defined]
        self._run = self._stand_in(self._original)
        torch.autograd._engine_run_backward = self._run  # type: ignore[attr-defined]

    def stop(self) -> None:
        """Step back, unless somebody else has taken the place since."""
        self._stopped = self.attended = True
        if torch.autograd._engine_run_backward is self._run:  # type: ignore[attr-defined]
            torch.autograd._engine_run_backward = self._original  # type: ignore[attr-defined,assignment]

    def __getitem__(self, index: int) -> EngineCall | None:
        """The call with that index, if it is still remembered."""
        entry = self.log.at(index)
        return EngineCall(index, *entry) if entry is not None else None

    def remembered(self) -> list[EngineCall]:
        """All calls still remembered, in order."""
        if self._remembered_at != self.count:
            self._remembered = [EngineCall(index, *entry) for index, entry in self.log.numbered()]
            self._remembered_at = self.count
        return self._remembered

    def _stand_in(self, original: Callable[..., Any]) -> Callable[..., Any]:
        note = self._noter()

        def run(t_outputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
            if self.attended:
                return self._run_attended(original, note, t_outputs, args, kwargs)
            entry = note(t_outputs, args, kwargs)
            try:
                return original(t_outputs, *args, **kwargs)
            except BaseException:
                self._note_failure(entry)
                raise

        return run

    def _run_attended(
        self,
        original: Callable[..., Any],
        note: Callable[..., "_Entry | None"],
        outputs: Sequence[Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
    ) -> Any:
        if self._stopped:  # somebody wrapped us and still calls
            return original(outputs, *args, **kwargs)
        self._tell(self.before_call)
        entry = note(outputs, args, kwargs)
        marked = self.marking
        self._tell(self.on_call)
        try:
            result = original(outputs, *args, **kwargs)
        except BaseException:
            self._note_failure(entry)
            raise
        if entry is not None and marked:
            # after the run: the call that fails must not hide the marks of the one that freed
            self._mark(outputs, args, entry)
        return result

    def _tell(self, listener: Callable[[], None]) -> None:
        try:
            listener()
        except Exception as error:
            self._on_failure(error)

    def _noter(self) -> "Callable[[Sequence[Any], Sequence[Any], dict[str, Any]], _Entry | None]":
        """Writes down a call. All it needs lies in its cells: every step of the program pays."""
        log, steps, timelines = self.log, self._steps, self._timelines
        is_recording, graph_task, modes = torch.is_grad_enabled, _graph_task, _modes_at_work
        next_number, thread_here, Tensor = next_node_number, get_ident, torch.Tensor

        def note(
            outputs: Sequence[Any], args: Sequence[Any], kwargs: dict[str, Any]
        ) -> _Entry | None:
            try:
                number = next_number()
                timeline = timelines.get(thread_here())
                if timeline is not None and number != timeline.last:
                    timeline.move(number)
                if len(outputs) == 1 and type(outputs[0]) is Tensor and not modes():
                    node = outputs[0].grad_fn  # nobody is disturbed by this look at it
                    roots: tuple[int, ...] = (-1 if node is None else node._sequence_nr(),)
                else:
                    roots = _numbers_of(outputs)
                entry = (
                    len(steps) + steps.forgotten,
                    timeline.current if timeline is not None else NOWHERE,
                    number,
                    roots,
                    args[1] if len(args) > 1 else False,
                    args[2] if len(args) > 2 else False,
                    kwargs.get("accumulate_grad", False),
                    is_recording(),
                    graph_task() != -1,
                    self.marking,
                )
                log.append(entry)
                if len(log) > MOST:
                    log.trim()
                return entry
            except Exception as error:
                self._on_failure(error)
                return None

        return note

    def _note_failure(self, entry: _Entry | None) -> None:
        self.failed_on = self._timelines.get(get_ident())
        self._remembered_at = -1
        if entry is not None:
            self.log.replace(entry, (*entry, True))

    def _mark(self, outputs: Sequence[Any], args: Sequence[Any], entry: _Entry) -> None:
        try:
            mark = (EngineCalls.started, self.log.number_of(entry))
            with _Undisturbed():
                roots = [root for root in map(_node_of, outputs) if root is not None]
                inputs = args[3] if len(args) > 3 else ()
            for node in needed_for(roots, inputs) if inputs else reachable(roots):
                if not is_accumulator(node):
                    notes_of(node)[MARK] = mark
        except Exception as error:
            self._on_failure(error)


def mark_of(node: Node) -> int | None:
    """Index of the last marking engine call that ran `node`."""
    if is_accumulator(node):
        return None
    mark = notes_of(node).get(MARK)
    if isinstance(mark, tuple) and mark[0] == EngineCalls.started:
        return int(mark[1])
    return None


def _numbers_of(outputs: Sequence[torch.Tensor | GradientEdge]) -> tuple[int, ...]:
    with _Undisturbed():
        roots = [_node_of(output) for output in outputs]
        return tuple([-1 if root is None else root._sequence_nr() for root in roots])


def _node_of(output: torch.Tensor | GradientEdge) -> Node | None:
    return output.grad_fn if isinstance(output, torch.Tensor) else output.node


def needed_for(roots: list[Node], inputs: Sequence[Any]) -> set[Node]:
    """The nodes that a call with `inputs=` runs: those that lead to one of the inputs."""
    leading = {_target(item) for item in inputs}
    needed: set[Node] = set()
    for node in reversed(engine_order(roots)):
        if any(child in leading for child in edges_of(node)):
            leading.add(node)
            needed.add(node)
    return needed


def _target(item: torch.Tensor | GradientEdge) -> Node:
    with _Undisturbed():
        return get_gradient_edge(item).node if isinstance(item, torch.Tensor) else item.node
