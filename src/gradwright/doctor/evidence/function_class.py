"""A custom autograd Function: its class, and its `forward` and `backward` in the source."""

import ast
import inspect
from dataclasses import dataclass
from types import CodeType, FunctionType

import torch
from torch.autograd.graph import Node

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.lines import Line, line_of_code
from gradwright.doctor.syntax import Function, SourceTree, dotted, function_at, tree_of
from gradwright.doctor.syntax.state import returns_of
from gradwright.graph import reachable


@dataclass(frozen=True, slots=True)
class FunctionClass:
    """A subclass of `torch.autograd.Function`, with a node of it where the graph shows one."""

    kind: type
    node: Node | None = None

    @property
    def name(self) -> str:
        """The class's name."""
        return self.kind.__name__

    @property
    def tree(self) -> SourceTree | None:
        """The file that defines `backward`."""
        code = self.code("backward")
        return tree_of(code.co_filename) if code is not None else None

    @property
    def inputs(self) -> list[str]:
        """The names of the inputs of `forward`, without the context."""
        function = getattr(self.kind, "forward", None)
        if not callable(function):
            return []
        names = list(inspect.signature(inspect.unwrap(function)).parameters)
        return names if "setup_context" in vars(self.kind) else names[1:]

    @property
    def differentiable(self) -> tuple[bool, ...]:
        """For each input given: whether it needs a gradient."""
        return tuple(bool(one) for one in getattr(self.node, "needs_input_grad", ()))

    def code(self, method: str) -> CodeType | None:
        """The code of a method, below its decorators."""
        function = getattr(self.kind, method, None)
        function = inspect.unwrap(function) if callable(function) else None
        return function.__code__ if isinstance(function, FunctionType) else None

    def source(self, method: str) -> Function | None:
        """The method's syntax."""
        code, tree = self.code(method), self.tree
        if code is None or tree is None:
            return None
        function = function_at(tree, code.co_firstlineno)
        return function if function is not None and function.name == method else None

    def returns(self) -> list[ast.Return]:
        """The `return` statements of `backward` that return something."""
        function, tree = self.source("backward"), self.tree
        if function is None or tree is None:
            return []
        return [one for one in returns_of(tree, function) if one.value is not None]

    def first_line(self) -> Line | None:
        """Where `backward` begins."""
        code = self.code("backward")
        return line_of_code(code) if code is not None else None


def classes_in_graph(crash: Crash) -> list[FunctionClass]:
    """The custom Functions that a backward from the roots runs through, each once."""
    found: dict[type, FunctionClass] = {}
    for node in reachable(crash.root_nodes()):
        kind = getattr(type(node), "_forward_cls", None)
        if isinstance(kind, type) and issubclass(kind, torch.autograd.Function):
            found.setdefault(kind, FunctionClass(kind, node))
    return list(found.values())


def classes_of_user(crash: Crash) -> list[FunctionClass]:
    """The custom Functions that are defined in the user's files."""
    found: list[FunctionClass] = []
    todo: list[type] = list(torch.autograd.Function.__subclasses__())
    while todo:
        kind = todo.pop()
        todo.extend(kind.__subclasses__())
        one = FunctionClass(kind)
        code = one.code("backward")
        if code is not None and crash.journal.is_user(code.co_filename):
            found.append(one)
    return found


def saved_names(forward: Function) -> list[str]:
    """What `forward` hands to `ctx.save_for_backward`; empty if that is not plain names."""
    for call in ast.walk(forward):
        if isinstance(call, ast.Call) and (dotted(call.func) or "").endswith("save_for_backward"):
            names = [dotted(one) for one in call.args]
            return [name for name in names if name] if all(names) else []
    return []
