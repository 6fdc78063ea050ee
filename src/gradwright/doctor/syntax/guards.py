"""Put `if` around statements."""

from __future__ import annotations

import ast

from gradwright.doctor.syntax.changes import Change, Unsafe, rewrite
from gradwright.doctor.syntax.contexts import _closed, _opened
from gradwright.doctor.syntax.layout import (
    first_offset,
    indent_unit,
    indentation,
    on_header_line,
    shifted,
)
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import block_of


@rewrite
def guard(tree: SourceTree, first: ast.stmt, last: ast.stmt, test: str) -> list[Change]:
    """Put `if <test>:` around the statements of one block from `first` to `last`."""
    block, start = block_of(tree, first)
    if last not in block[start:] or on_header_line(tree, first):
        raise Unsafe
    indent = indentation(tree, block[0])
    inner = indent + indent_unit(tree)
    changes = _opened(tree, first, f"if {test}:", indent, inner)
    first_line = tree.line_of(first_offset(tree, first)) + 1
    changes += shifted(tree, first_line, tree.line_of(tree.end(last)), indent, inner)
    return changes + _closed(tree, last, indent)
