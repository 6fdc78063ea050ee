"""Put `with` around statements, take it away, move it, rename it."""

from __future__ import annotations

import ast

from gradwright.doctor.syntax.changes import Change, Unsafe, rewrite
from gradwright.doctor.syntax.imports import localise
from gradwright.doctor.syntax.layout import (
    ends_line,
    first_offset,
    header_end,
    indent_unit,
    indentation,
    line_end,
    on_header_line,
    own_lines,
    shifted,
    starts_line,
)
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import LOOPS, Loop, With, block_of


@rewrite
def wrap_in_with(tree: SourceTree, first: ast.stmt, last: ast.stmt, header: str) -> list[Change]:
    """Put `with <header>:` around the statements of one block from `first` to `last`.

    `header` says `torch.…`; it is written as the file imports torch. Strings keep their text.
    """
    block, start = block_of(tree, first)
    if last not in block[start:]:
        raise Unsafe
    header, changes = localise(tree, header.strip().removeprefix("with ").rstrip(":"))
    unit = indent_unit(tree)
    indent = indentation(tree, block[0]) + (unit if on_header_line(tree, first) else "")
    changes += _opened(tree, first, f"with {header}:", indent, indent + unit)
    first_line = tree.line_of(first_offset(tree, first)) + 1
    last_line = tree.line_of(tree.end(last))
    changes += shifted(tree, first_line, last_line, indentation(tree, block[0]), indent + unit)
    return changes + _closed(tree, last, indent)


def _opened(
    tree: SourceTree, first: ast.stmt, header: str, indent: str, inner: str
) -> list[Change]:
    """Write the header and the indentation of the first statement."""
    start = first_offset(tree, first)
    if starts_line(tree, first):
        at = tree.starts[tree.line_of(start) - 1]
        return [Change(at, start, f"{indent}{header}{tree.newline}{inner}")]
    block, index = block_of(tree, first)
    if index:
        before = tree.end(block[index - 1])  # `a; b`: the semicolon goes
    else:
        before = len(tree.text[:start].rstrip(" \t"))
        if tree.text[before - 1] != ":":
            raise Unsafe
    text = f"{tree.newline}{indent}{header}{tree.newline}{inner}"
    return [Change(before, start, text)]


def _closed(tree: SourceTree, last: ast.stmt, indent: str) -> list[Change]:
    """Give what follows on the same line a line of its own."""
    block, index = block_of(tree, last)
    if ends_line(tree, last):
        return []
    if index + 1 == len(block) or starts_line(tree, block[index + 1]):
        raise Unsafe
    after = first_offset(tree, block[index + 1])
    return [Change(tree.end(last), after, f"{tree.newline}{indent}")]


@rewrite
def unwrap_with(tree: SourceTree, statement: With, item: int = 0) -> list[Change]:
    """Remove one item of a `with`; with its only item the statement, whose body moves out."""
    if statement.items[item].optional_vars is not None:
        raise Unsafe  # its name may be used
    if len(statement.items) > 1:
        return [_without_item(tree, statement, item)]
    return unwrapped(tree, statement)


def _without_item(tree: SourceTree, statement: With, item: int) -> Change:
    items = statement.items
    if item:
        before = items[item - 1].optional_vars or items[item - 1].context_expr
        return Change(tree.end(before), tree.end(items[item].context_expr), "")
    return Change(tree.start(items[0].context_expr), tree.start(items[1].context_expr), "")


def unwrapped(tree: SourceTree, statement: With) -> list[Change]:
    """The changes that remove a `with` header and dedent the body."""
    body = statement.body
    start = first_offset(tree, statement)
    if not starts_line(tree, body[0]):
        return [Change(start, first_offset(tree, body[0]), "")]
    if not starts_line(tree, statement):
        raise Unsafe
    top = header_end(tree, statement)  # type: ignore[arg-type]
    first_line = tree.line_of(top) + 1
    removed = Change(tree.starts[tree.line_of(start) - 1], tree.starts[first_line - 1], "")
    old, new = indentation(tree, body[0]), indentation(tree, statement)
    last_line = _last_comment(tree, tree.line_of(line_end(tree, body[-1]) - 1), old)
    return [removed, *shifted(tree, first_line, last_line, old, new)]


def _last_comment(tree: SourceTree, line: int, indent: str) -> int:
    """The last line of the comments below `line` that are indented as its block."""
    last = line
    for number in range(line, len(tree.lines)):  # counts from 0: the line after
        text = tree.lines[number]
        if text.strip() and not text.startswith(f"{indent}#"):
            break
        last = number + 1 if text.strip() else last
    return last


@rewrite
def grad_switch_to_block(tree: SourceTree, statement: ast.stmt) -> list[Change]:
    """Turn `torch.set_grad_enabled(False)` left on into `with torch.no_grad():`.

    The block reaches to the statement that switches back, or to the end of the block it is in.
    """
    value = switched_to(statement)
    block, index = block_of(tree, statement)
    own_lines(tree, statement, statement)
    back = [one for one in block[index + 1 :] if _is_switch(one)]
    end = block.index(back[0]) if back else len(block)
    inside = block[index + 1 : end]
    if not inside or (back and switched_to(back[0]) == value):
        raise Unsafe
    assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    function = tree.source(statement.value.func)
    short = function.replace("set_grad_enabled", "enable_grad" if value else "no_grad")
    header, changes = localise(tree, short if "." in short else f"torch.{short}")
    changes.append(Change(tree.start(statement), tree.end(statement), f"with {header}():"))
    if back:
        changes.append(Change(*own_lines(tree, back[0], back[0]), ""))
    first_line = tree.line_of(line_end(tree, statement) - 1) + 1
    last_line = tree.line_of(line_end(tree, inside[-1]) - 1)
    old = indentation(tree, statement)
    return changes + shifted(tree, first_line, last_line, old, old + indent_unit(tree))


def switched_to(statement: ast.stmt) -> bool:
    """The constant a `set_grad_enabled` statement switches to; raises Unsafe for others."""
    if not _is_switch(statement):
        raise Unsafe
    assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    values = [*statement.value.args, *(keyword.value for keyword in statement.value.keywords)]
    if len(values) != 1 or not isinstance(values[0], ast.Constant):
        raise Unsafe
    return bool(values[0].value)


def _is_switch(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    function = call.func if isinstance(call, ast.Call) else None
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name == "set_grad_enabled"


@rewrite
def swap_with_and_loop(tree: SourceTree, statement: With) -> list[Change]:
    """Move a `with` around a loop into the body of the loop, which must be all it holds."""
    loop = statement.body[0]
    if len(statement.body) > 1 or not isinstance(loop, LOOPS) or loop.orelse:
        raise Unsafe
    if not starts_line(tree, statement) or not starts_line(tree, loop):
        raise Unsafe
    outer = _header_line(tree, statement)
    inner = _header_line(tree, loop)
    return [
        Change(*outer, tree.text[slice(*inner)]),
        Change(*inner, _header_text(tree, loop, tree.text[slice(*outer)])),
    ]


def _header_line(tree: SourceTree, statement: With | Loop) -> tuple[int, int]:
    """Offsets of a header with its comment, or up to its colon if the body follows at once."""
    end = header_end(tree, statement)  # type: ignore[arg-type]
    if starts_line(tree, statement.body[0]):
        line = tree.line_of(end)
        end = tree.starts[line - 1] + len(tree.lines[line - 1].rstrip("\r\n"))
    return tree.start(statement), end


def _header_text(tree: SourceTree, loop: Loop, header: str) -> str:
    """The `with` header in the loop's place; a comment cannot stay before a body on its line."""
    if "#" in header and not starts_line(tree, loop.body[0]):
        raise Unsafe
    return header
