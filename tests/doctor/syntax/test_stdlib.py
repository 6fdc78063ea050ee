"""Every rewrite on real files: results parse, other lines stay, statements keep their meaning."""

from __future__ import annotations

import ast
import asyncio
import email
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradwright.diagnostic.edits import apply
from gradwright.diagnostic.model import Edit
from gradwright.doctor.syntax import (
    SourceTree,
    add_return,
    append_method,
    block_of,
    decorators_of,
    delete_statement,
    detach_after_store,
    insert_after,
    insert_at_function_end,
    insert_before,
    move_into_loop,
    out_of_place,
    set_keyword,
    swap_with_and_loop,
    tree_from_text,
    tree_of,
    unwrap_with,
    wrap_in_with,
    wrap_value,
)
from gradwright.doctor.syntax.names import assigned_names

Edits = tuple[Edit, ...] | None
FILES = [
    str(path)
    for package in (json, email, asyncio)
    for path in sorted(Path(package.__path__[0]).glob("*.py"))
]


def expressions(tree: SourceTree, statement: ast.stmt) -> Iterator[Edits]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and not isinstance(tree.parents[node], ast.stmt):
            yield set_keyword(tree, node, "gradwright", "True")
            yield append_method(tree, node, ".detach()")


def rewrites(tree: SourceTree, statement: ast.stmt) -> Iterator[Edits]:
    """What every rewrite that fits the statement gives."""
    block, _ = block_of(tree, statement)
    yield wrap_in_with(tree, statement, block[-1], "torch.no_grad()")
    yield insert_before(tree, statement, ["new = 1"])
    yield insert_after(tree, statement, ["new = 1"])
    yield delete_statement(tree, statement)
    if isinstance(statement, ast.With | ast.AsyncWith):
        yield unwrap_with(tree, statement)
        yield swap_with_and_loop(tree, statement)
    elif isinstance(statement, ast.Return | ast.Assign | ast.AugAssign | ast.AnnAssign):
        yield wrap_value(tree, statement, "{}.detach()")
        yield out_of_place(tree, statement)
        for name in assigned_names(statement):
            yield detach_after_store(tree, statement, name, "tuple")
    elif isinstance(statement, ast.FunctionDef):
        yield insert_at_function_end(tree, statement, ["self.state = None"])
        yield add_return(tree, statement, ["self"])
    elif isinstance(statement, ast.Expr):
        yield from expressions(tree, statement)
    for loop in block:
        if isinstance(loop, ast.For | ast.While):
            yield move_into_loop(tree, statement, loop)


def statements(tree: SourceTree) -> list[ast.stmt]:
    return [node for node in ast.walk(tree.root) if isinstance(node, ast.stmt)]


def pieces(tree: SourceTree) -> Iterator[SourceTree]:
    """The top-level statements as sources of their own: small ones compile fast."""
    for statement in tree.root.body:
        first = min([statement.lineno, *(one.lineno for one in decorators_of(statement))])
        text = "".join(tree.lines[first - 1 : statement.end_lineno])
        piece = tree_from_text(tree.file, text)
        assert piece is not None
        yield piece


def check(tree: SourceTree, edits: tuple[Edit, ...]) -> None:
    """Each edit lies within the file, in order, and what is between is what was there."""
    text = apply(tree.text, edits)
    at_old, at_new = 0, 0
    for edit in sorted(edits, key=lambda edit: edit.line):
        kept = tree.text[at_old : tree.starts[edit.line - 1]]
        assert text[at_new : at_new + len(kept)] == kept
        at_new += len(kept) + len(edit.replacement)
        at_old = tree.starts[edit.end_line]
    assert text[at_new:] == tree.text[at_old:]


@pytest.mark.parametrize("file", FILES, ids=lambda file: "/".join(Path(file).parts[-2:]))
def test_untouched_lines_stay(file: str) -> None:
    tree = tree_of(file)
    assert tree is not None
    done = 0
    for piece in pieces(tree):
        stride = 1 + len(piece.lines) // 3  # every statement of a long class takes minutes
        for statement in statements(piece)[::stride]:
            for edits in rewrites(piece, statement):
                if edits is not None:
                    check(piece, edits)
                    done += 1
    assert done >= len(tree.root.body)


def inner(text: str, kind: type[ast.With], context: str) -> list[str]:
    """The code of every `with <context>` body, without positions."""
    return [
        "".join(ast.dump(one) for one in node.body)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, kind) and ast.unparse(node.items[0].context_expr) == context
    ]


def meaning(body: list[ast.stmt]) -> str:
    return "".join(ast.dump(one) for one in body)


@pytest.mark.parametrize("name", ["json/decoder.py", "email/header.py", "asyncio/locks.py"])
def test_wrapped_statements_mean_the_same(name: str) -> None:
    file = next(one for one in FILES if one.endswith(name))
    tree = tree_of(file)
    assert tree is not None
    wrapped = 0
    for statement in statements(tree)[::9]:
        block, index = block_of(tree, statement)
        edits = wrap_in_with(tree, statement, block[-1], "here()")
        if edits is not None:
            wrapped += 1
            assert inner(apply(tree.text, edits), ast.With, "here()") == [meaning(block[index:])]
    assert wrapped > 5


@pytest.mark.parametrize("name", ["json/encoder.py", "email/header.py", "asyncio/queues.py"])
def test_values_mean_the_same_after_wrapping(name: str) -> None:
    file = next(one for one in FILES if one.endswith(name))
    tree = tree_of(file)
    assert tree is not None
    found = [node for node in ast.walk(tree.root) if isinstance(node, ast.Return) and node.value]
    for statement in found:
        assert statement.value is not None
        edits = wrap_value(tree, statement, "{}.detach()")
        assert edits is not None
        expected = f"({ast.unparse(statement.value)}).detach()"
        values = [
            ast.dump(node.value)
            for node in ast.walk(ast.parse(apply(tree.text, edits)))
            if isinstance(node, ast.Return) and node.value is not None
        ]
        assert ast.dump(ast.parse(expected, mode="eval").body) in values


def test_deletion_removes_exactly_the_statement() -> None:
    tree = tree_of(next(one for one in FILES if one.endswith("json/decoder.py")))
    assert tree is not None
    removed = 0
    for statement in tree.root.body:
        edits = delete_statement(tree, statement)
        assert edits is not None
        after = ast.parse(apply(tree.text, edits))
        rest = [one for one in tree.root.body if one is not statement]
        assert meaning(after.body) == meaning(rest)
        removed += 1
    assert removed == len(tree.root.body)
