"""A loop that was to detach a state and detaches only its own variable."""

import ast
from dataclasses import dataclass

from gradwright.diagnostic import Span
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.sources import source_files
from gradwright.doctor.syntax.names import dotted
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import span_of


@dataclass(frozen=True, slots=True)
class LostDetach:
    """`for part in state: part = part.detach()`: the state itself stays as it is."""

    tree: SourceTree
    loop: ast.For
    assignment: ast.Assign

    @property
    def span(self) -> Span:
        """The assignment."""
        return span_of(self.tree, self.assignment)


def find_lost_detach(crash: Crash) -> LostDetach | None:
    """The only such loop in the user's files, if there is exactly one."""
    found = [
        LostDetach(tree, loop, assignment)
        for tree in source_files(crash)
        for loop in ast.walk(tree.root)
        if isinstance(loop, ast.For) and (assignment := _lost(loop)) is not None
    ]
    return found[0] if len(found) == 1 else None


def _lost(loop: ast.For) -> ast.Assign | None:
    """The last statement of a loop that detaches one of the loop's variables into itself."""
    names = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    last = loop.body[-1]
    if not isinstance(last, ast.Assign) or not isinstance(last.value, ast.Call):
        return None
    function = last.value.func
    if not isinstance(function, ast.Attribute) or function.attr != "detach":
        return None
    name = dotted(function.value)
    return last if name in names and dotted(last.targets[0]) == name else None
