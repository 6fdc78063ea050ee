"""Arguments of calls: add, replace, remove."""

from __future__ import annotations

import ast

from gradwright.doctor.syntax.changes import Change, Unsafe, rewrite
from gradwright.doctor.syntax.layout import skip_space
from gradwright.doctor.syntax.precedence import Level, fitted, outer_bounds
from gradwright.doctor.syntax.tree import SourceTree


def keyword_of(call: ast.Call, name: str) -> ast.keyword | None:
    """The keyword argument with this name, if it is written."""
    return next((keyword for keyword in call.keywords if keyword.arg == name), None)


def argument_of(call: ast.Call, which: int | str) -> ast.expr | None:
    """An argument by position or keyword name, if it is written there."""
    if isinstance(which, str):
        keyword = keyword_of(call, which)
        return None if keyword is None else keyword.value
    starred = any(isinstance(one, ast.Starred) for one in call.args[: which + 1])
    return call.args[which] if 0 <= which < len(call.args) and not starred else None


@rewrite
def set_keyword(tree: SourceTree, call: ast.Call, name: str, text: str) -> list[Change]:
    """Give a call the keyword `name=text`: replaced where it is written, else added.

    It is added last, before `**kwargs`, on a line of its own where the last argument has one.
    """
    return [keyword_set(tree, call, name, text)]


@rewrite
def remove_keyword(tree: SourceTree, call: ast.Call, name: str) -> list[Change]:
    """Remove a keyword argument with its comma."""
    keyword = keyword_of(call, name)
    if keyword is None:
        raise Unsafe
    return [keyword_removed(tree, call, keyword)]


@rewrite
def replace_argument(tree: SourceTree, call: ast.Call, which: int | str, text: str) -> list[Change]:
    """Put other code in the place of an argument, given by position or keyword name."""
    argument = argument_of(call, which)
    if argument is None:
        raise Unsafe
    return [Change(*_bounds(tree, call, argument), fitted(text, Level.TEST))]


def keyword_set(tree: SourceTree, call: ast.Call, name: str, text: str) -> Change:
    """The change of `set_keyword`."""
    keyword = keyword_of(call, name)
    text = fitted(text, Level.TEST)
    if keyword is not None:
        return Change(*_bounds(tree, call, keyword.value), text)
    rest = [one for one in call.keywords if one.arg is None]
    if rest:
        return Change(tree.start(rest[0]), tree.start(rest[0]), f"{name}={text}, ")
    arguments: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    if not arguments:
        at = tree.end(call) - 1
        return Change(at, at, f"{name}={text}")
    last = max(arguments, key=tree.start)
    return _added_after(tree, call, last, f"{name}={text}")


def _bounds(tree: SourceTree, call: ast.Call, argument: ast.expr) -> tuple[int, int]:
    """The bounds of an argument with its own parentheses."""
    start, end = outer_bounds(tree, argument)
    if end >= tree.end(call):
        raise Unsafe  # `f(x for x in y)`: the parentheses are the call's
    return start, end


def _added_after(
    tree: SourceTree, call: ast.Call, last: ast.expr | ast.keyword, argument: str
) -> Change:
    value = last.value if isinstance(last, ast.keyword) else last
    _, end = _bounds(tree, call, value)
    line = tree.line_of(tree.start(last))
    before = tree.text[tree.starts[line - 1] : tree.start(last)]
    if before.strip() or tree.line_of(tree.end(call)) == tree.line_of(end):
        return Change(end, end, f", {argument}")
    comma = skip_space(tree, end)
    if tree.text[comma] != ",":
        return Change(end, end, f",{tree.newline}{before}{argument}")
    stop = tree.starts[tree.line_of(comma)]
    if skip_space(tree, comma + 1) < stop:
        return Change(end, end, f", {argument}")
    return Change(stop, stop, f"{before}{argument},{tree.newline}")


def keyword_removed(tree: SourceTree, call: ast.Call, keyword: ast.keyword) -> Change:
    """The change of `remove_keyword`."""
    arguments: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    arguments.sort(key=tree.start)
    index = arguments.index(keyword)
    start, (_, end) = tree.start(keyword), _bounds(tree, call, keyword.value)
    comma = skip_space(tree, end)
    has_comma = tree.text[comma] == ","
    lines = _lines_of(tree, start, comma + 1 if has_comma else end)
    if lines is not None and (
        has_comma or index == 0 or "#" in _gap(tree, arguments[index - 1], start)
    ):
        return Change(*lines, "")
    if has_comma and (index + 1 < len(arguments) or index == 0):
        return Change(start, skip_space(tree, comma + 1), "")
    if index == 0:
        return Change(start, end, "")
    return Change(_end_of(tree, arguments[index - 1]), end, "")


def _end_of(tree: SourceTree, argument: ast.expr | ast.keyword) -> int:
    value = argument.value if isinstance(argument, ast.keyword) else argument
    return outer_bounds(tree, value)[1]


def _gap(tree: SourceTree, before: ast.expr | ast.keyword, start: int) -> str:
    """The text between an argument and the next, where comments may stand."""
    return tree.text[_end_of(tree, before) : start]


def _lines_of(tree: SourceTree, start: int, end: int) -> tuple[int, int] | None:
    """Offsets of the lines of a stretch of code, if it has them for itself."""
    first, last = tree.line_of(start), tree.line_of(end - 1)
    alone = not tree.text[tree.starts[first - 1] : start].strip()
    if not alone or skip_space(tree, end) < tree.starts[last]:
        return None
    return tree.starts[first - 1], tree.starts[last]
