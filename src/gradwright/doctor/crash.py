"""What is known of the exception that ended a program."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType, TracebackType
from typing import TypeVar, cast

import torch
from torch.autograd.graph import GradientEdge, Node

from gradwright.doctor.journal import EngineCall, Journal, Site
from gradwright.doctor.kinds import is_a
from gradwright.graph import engine_order

Fact = TypeVar("Fact")
_ENGINE_FUNCTIONS = {"backward": "tensors", "grad": "outputs"}


@dataclass(frozen=True, slots=True)
class CrashFrame:
    """A function that was running when the exception passed through it."""

    frame: FrameType
    line: int
    instruction: int
    user: bool

    @property
    def code(self) -> CodeType:
        """The code of the function."""
        return self.frame.f_code

    @property
    def file(self) -> str:
        """The file of the function."""
        return self.frame.f_code.co_filename

    @property
    def site(self) -> Site:
        """The line as a site."""
        return Site(self.file, self.line, self.code.co_qualname, self.code)


class Crash:
    """An exception with the frames it passed through, outermost first, and the journal."""

    def __init__(
        self, exception: BaseException, journal: Journal, objects: Sequence[object] = ()
    ) -> None:
        self.exception = exception
        self.objects = objects  # what the user handed to `watch` for its names
        self.journal = journal
        self.frames = list(_frames(exception, journal))
        self.message = _said(exception)
        self._facts: dict[object, object] = {}

    def once(self, find: Callable[["Crash"], Fact]) -> Fact:
        """`find(self)`, worked out the first time it is asked for: rules share their evidence."""
        if find not in self._facts:
            self._facts[find] = find(self)
        return cast(Fact, self._facts[find])

    @property
    def user_frames(self) -> list[CrashFrame]:
        """The frames in the user's code, outermost first."""
        return [frame for frame in self.frames if frame.user]

    @property
    def raised_at(self) -> CrashFrame | None:
        """The user's innermost line that the exception passed through."""
        return self.user_frames[-1] if self.user_frames else None

    @property
    def call(self) -> EngineCall | None:
        """The engine call that raised, if the exception came through one."""
        return self.journal.failing_call() if self.in_engine else None

    @property
    def in_engine(self) -> bool:
        """Whether the exception came through `backward` or `grad`."""
        return self.engine_frame is not None

    @property
    def engine_frame(self) -> CrashFrame | None:
        """The outermost frame of torch.autograd's `backward` or `grad`."""
        for frame in self.frames:
            if frame.code in (torch.autograd.backward.__code__, torch.autograd.grad.__code__):
                return frame
        return None

    def roots(self) -> list[torch.Tensor]:
        """The tensors that `backward` or `grad` was asked to start from."""
        frame = self.engine_frame
        if frame is None:
            return []
        given = frame.frame.f_locals.get(_ENGINE_FUNCTIONS[frame.code.co_name])
        items = [given] if is_a(given, torch.Tensor, GradientEdge) else list(given or ())
        return [item for item in items if is_a(item, torch.Tensor)]

    def root_nodes(self) -> list[Node]:
        """The graph nodes of the roots."""
        return [root.grad_fn for root in self.roots() if root.grad_fn is not None]

    def engine_nodes(self) -> list[Node]:
        """The nodes below the roots in the order the engine runs them, worked out once."""
        return self.once(_engine_nodes)

    def engine_inputs(self) -> list[torch.Tensor]:
        """The `inputs=` of the call; empty when it was for all leaves."""
        frame = self.engine_frame
        given = frame.frame.f_locals.get("inputs") if frame is not None else None
        if is_a(given, torch.Tensor):
            return [given]
        return [item for item in given or () if is_a(item, torch.Tensor)]


def chain(exception: BaseException) -> Iterator[BaseException]:
    """The exception and those it was raised from."""
    seen: set[int] = set()
    current: BaseException | None = exception
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or (
            None if current.__suppress_context__ else current.__context__
        )


def _engine_nodes(crash: Crash) -> list[Node]:
    return engine_order(crash.root_nodes())


def _said(exception: BaseException) -> str:
    try:
        return str(exception)
    except Exception:  # the program's own class may fail at this
        return "<exception str() failed>"


def _frames(exception: BaseException, journal: Journal) -> Iterator[CrashFrame]:
    traceback: TracebackType | None = exception.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        yield CrashFrame(
            frame,
            traceback.tb_lineno,
            traceback.tb_lasti,
            journal.is_user(frame.f_code.co_filename),
        )
        traceback = traceback.tb_next
