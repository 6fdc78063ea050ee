"""What turned the recording of gradients off, as the source shows it."""

import ast
from dataclasses import dataclass
from typing import Literal

from gradwright.diagnostic import Span
from gradwright.doctor.journal import Site
from gradwright.doctor.syntax.decorators import context_name
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import Function, With, span_of

Kind = Literal["with", "decorator", "left-on", "library"]

_OFF = {"no_grad", "inference_mode", "set_grad_enabled"}


@dataclass(frozen=True, slots=True)
class Region:
    """What turned recording off for an operation, as the source shows it."""

    kind: Kind
    site: Site
    span: Span
    tree: SourceTree | None = None
    node: With | Function | ast.stmt | None = None
    item: int = 0  # of a `with` that has several
    context: str = ""  # full name: torch.no_grad; for a library function, its text
    callee: Site | None = None  # for a library function: the user function it called back
    held: bool = False  # a generator waits inside the block: recording is off in its consumer

    @property
    def inference(self) -> bool:
        """Whether it is inference mode, which `enable_grad` cannot undo."""
        return self.context.endswith("inference_mode")


def turns_off(tree: SourceTree, context: ast.expr) -> bool:
    """Whether entering this context turns recording off, or may."""
    name = (context_name(tree, context) or "").rpartition(".")[2]
    if name not in _OFF:
        return False
    values = _arguments(context)
    constant = values[0].value if values and isinstance(values[0], ast.Constant) else None
    if name == "inference_mode":
        return constant is not False
    return name == "no_grad" or constant is not True


def _arguments(context: ast.expr) -> list[ast.expr]:
    if not isinstance(context, ast.Call):
        return []
    return [*context.args, *(keyword.value for keyword in context.keywords)]


def with_region(tree: SourceTree, node: With, index: int, site: Site) -> Region:
    """The region of one item of a `with`."""
    context = node.items[index].context_expr
    name = context_name(tree, context) or ""
    here = Site(site.file, node.lineno, site.function, site.code)
    return Region("with", here, span_of(tree, context), tree, node, index, name)
