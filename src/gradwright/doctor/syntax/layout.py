"""How statements lie on lines: indentation, whole lines, headers, strings over several lines."""

from __future__ import annotations

import ast
import re
import tokenize
from functools import lru_cache

from gradwright.doctor.syntax.changes import Change, Unsafe
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import block_of, decorators_of

_BLANK = " \t\f"
_REST_OF_LINE = re.compile(r"[ \t\f]*;?[ \t\f]*(#[^\r\n]*)?(\r\n|\r|\n|\Z)")
_SPACE = re.compile(r"(?:[ \t\f\r\n]|\\(?:\r\n|\r|\n)|#[^\r\n]*)*")


def first_offset(tree: SourceTree, statement: ast.stmt) -> int:
    """Offset where a statement starts, decorators included."""
    if tree.text.startswith("elif", tree.start(statement)):
        raise Unsafe  # an `elif` is an If inside an else that is not written
    decorators = decorators_of(statement)
    if not decorators:
        return tree.start(statement)
    return tree.text.rindex("@", 0, tree.start(decorators[0]))


def indentation(tree: SourceTree, statement: ast.stmt) -> str:
    """The white space before the line where a statement starts."""
    line = tree.lines[tree.line_of(first_offset(tree, statement)) - 1]
    return line[: len(line) - len(line.lstrip(_BLANK))]


def starts_line(tree: SourceTree, statement: ast.stmt) -> bool:
    """True if nothing but white space stands before the statement on its line."""
    start = first_offset(tree, statement)
    line = tree.line_of(start)
    before = tree.lines[line - 2].rstrip("\r\n") if line > 1 else ""
    return not tree.text[tree.starts[line - 1] : start].strip(_BLANK) and not before.endswith("\\")


def ends_line(tree: SourceTree, statement: ast.stmt) -> bool:
    """True if nothing but a semicolon and a comment stands after the statement on its line."""
    return _REST_OF_LINE.match(tree.text, tree.end(statement)) is not None


def line_end(tree: SourceTree, statement: ast.stmt) -> int:
    """Offset just after the last line of a statement that ends its line."""
    rest = _REST_OF_LINE.match(tree.text, tree.end(statement))
    if rest is None:
        raise Unsafe
    return rest.end()


def own_lines(tree: SourceTree, first: ast.stmt, last: ast.stmt) -> tuple[int, int]:
    """Offsets of the whole lines of the statements from `first` to `last`.

    Raises Unsafe if they share a line with other code.
    """
    if not starts_line(tree, first):
        raise Unsafe
    end = line_end(tree, last)
    return tree.starts[tree.line_of(first_offset(tree, first)) - 1], end


def on_header_line(tree: SourceTree, statement: ast.stmt) -> bool:
    """True in a block that starts on the line of its header: `if x: y += 1`."""
    block, _ = block_of(tree, statement)
    return not isinstance(tree.parents[statement], ast.Module) and not starts_line(tree, block[0])


def indent_unit(tree: SourceTree) -> str:
    """One step of indentation, as the first indented block of the file has it."""
    for node in ast.walk(tree.root):
        body = getattr(node, "body", None)
        if not isinstance(node, ast.stmt) or not isinstance(body, list) or not body:
            continue
        if tree.text.startswith("elif", tree.start(node)) or not starts_line(tree, body[0]):
            continue
        outer, inner = indentation(tree, node), indentation(tree, body[0])
        if inner != outer and inner.startswith(outer):
            return inner[len(outer) :]
    return "    "


def skip_space(tree: SourceTree, offset: int) -> int:
    """Offset of the next character of code: past white space, comments and continued lines."""
    match = _SPACE.match(tree.text, offset)
    return offset if match is None else match.end()


def header_end(tree: SourceTree, statement: ast.For | ast.AsyncFor | ast.While | ast.With) -> int:
    """Offset just after the colon of a loop or `with` header."""
    if isinstance(statement, ast.While):
        last: ast.expr = statement.test
    elif isinstance(statement, ast.For | ast.AsyncFor):
        last = statement.iter
    else:
        item = statement.items[-1]
        last = item.optional_vars or item.context_expr
    at = skip_space(tree, tree.end(last))
    while tree.text[at] in "),":
        at = skip_space(tree, at + 1)
    if tree.text[at] != ":":
        raise Unsafe
    return at + 1


@lru_cache(maxsize=32)
def lines_inside_strings(tree: SourceTree) -> frozenset[int]:
    """The lines that start inside a string; their white space belongs to the value."""
    found: set[int] = set()
    opened: list[int] = []
    lines = iter(tree.lines)
    try:
        for token in tokenize.generate_tokens(lambda: next(lines, "")):
            name = tokenize.tok_name[token.type]
            if name in ("FSTRING_START", "TSTRING_START"):
                opened.append(token.start[0])
            elif name in ("FSTRING_END", "TSTRING_END"):
                found.update(range(opened.pop() + 1, token.end[0] + 1))
            elif token.type == tokenize.STRING:
                found.update(range(token.start[0] + 1, token.end[0] + 1))
    except (tokenize.TokenError, SyntaxError) as error:
        raise Unsafe from error
    return frozenset(found)


def shifted(tree: SourceTree, first: int, last: int, old: str, new: str) -> list[Change]:
    """Replace the indentation `old` by `new` on the lines `first` to `last`.

    Blank lines, lines inside strings and lines indented less stay.
    """
    changes = []
    for number in range(first, last + 1):
        line = tree.lines[number - 1]
        if not line.strip() or number in lines_inside_strings(tree) or not line.startswith(old):
            continue
        start = tree.starts[number - 1]
        changes.append(Change(start, start + len(old), new))
    return changes


def moved_text(tree: SourceTree, statement: ast.stmt, new: str) -> str:
    """The whole lines of a statement, with its indentation replaced by `new`."""
    start, end = own_lines(tree, statement, statement)
    first = tree.line_of(start)
    changes = shifted(tree, first, tree.line_of(end - 1), indentation(tree, statement), new)
    pieces, at = [], start
    for change in changes:
        pieces += [tree.text[at : change.start], change.text]
        at = change.end
    text = "".join([*pieces, tree.text[at:end]])
    return text if text.endswith(("\n", "\r")) else text + tree.newline
