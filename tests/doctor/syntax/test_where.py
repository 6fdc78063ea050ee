from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gradwright.diagnostic.model import Span
from gradwright.doctor.syntax import (
    SourceTree,
    block_of,
    call_at,
    class_at,
    decorators_of,
    expression_at,
    function_at,
    loop_at,
    loops_around,
    qualified_name,
    span_of,
    span_of_bytes,
    statement_at,
    statement_of,
    tree_of,
    with_statements_around,
)
from tests.doctor.syntax.sources import at, code, expr, line, tree_from

PROGRAM = code('''
    import torch.utils.checkpoint as ckpt
    from torch.autograd import grad as gradient

    class Net(nn.Module):
        @torch.no_grad()
        @cached(
            size=3)
        def forward(self, x):
            for i in range(3):
                with a, b:
                    if x: y = 1; z = 2
                x = ckpt.checkpoint(
                    self.block,
                    x,
                )
            while x:
                def inner():
                    return gradient(x, y)
            """Größe"""; é = f(ü) + g(x)
            return x
''')


@pytest.fixture
def tree() -> SourceTree:
    return tree_from(PROGRAM)


def test_statement_at(tree: SourceTree) -> None:
    starts = {
        6: "def forward",
        9: "for i",
        10: "with a",
        13: "x = ckpt",
        18: "return g",
    }
    for number, start in starts.items():
        assert tree.source(line(tree, number)).startswith(start)
    shared = PROGRAM.splitlines()[10]
    for start in ("y = 1", "z = 2"):
        assert statement_at(tree, 11, shared.index(start)) is at(tree, start)
    assert statement_at(tree, 11) is None  # which of the two?
    assert statement_at(tree, 3) is None
    assert statement_at(tree, 99) is None


def test_what_is_around(tree: SourceTree) -> None:
    assert function_at(tree, 13) is at(tree, "def forward")
    assert function_at(tree, 18) is at(tree, "def inner")
    assert function_at(tree, 2) is None
    assert class_at(tree, 18) is at(tree, "class Net")
    assert class_at(tree, 1) is None
    assert loop_at(tree, 11) is at(tree, "for i")
    assert loop_at(tree, 9) is at(tree, "for i")
    assert loop_at(tree, 18) is None  # the loop is outside its function
    assert [one.lineno for one in with_statements_around(tree, 11)] == [10]
    assert [tree.source(one)[:6] for one in decorators_of(at(tree, "def forward"))] == [
        "torch.",
        "cached",
    ]
    assert loops_around(tree, at(tree, "x = ckpt")) == [loop_at(tree, 9)]
    block, index = block_of(tree, at(tree, "z = 2"))
    assert (len(block), index) == (2, 1)


def test_call_at(tree: SourceTree) -> None:
    checkpoint = call_at(tree, 13, ["checkpoint"])
    assert checkpoint is call_at(tree, 14, ["torch.utils.checkpoint.checkpoint"])
    assert checkpoint is call_at(tree, 12, {"ckpt.checkpoint"})
    assert call_at(tree, 18, ["torch.autograd.grad"]) is not None
    assert call_at(tree, 18, ["grad"]) is None
    assert qualified_name(tree, expr(tree, "gradient")) == "torch.autograd.grad"


def test_spans_count_characters(tree: SourceTree) -> None:
    node = expr(tree, "f(ü)")
    text = PROGRAM.splitlines()[18]
    start = text.index("f(ü)")
    assert span_of(tree, node) == Span("program.py", 19, start, 19, start + 4)
    assert node.end_col_offset is not None
    assert span_of_bytes(tree, 19, node.col_offset, 19, node.end_col_offset) == span_of(tree, node)
    assert expression_at(tree, 19, start, 19, start + 4) is node
    assert expression_at(tree, 19, start + 1, 19, start + 3) is node
    assert expression_at(tree, 99, 0, 99, 1) is None
    assert statement_of(tree, node) is at(tree, "é = f")


def test_tree_of_a_file_follows_its_changes(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes("# -*- coding: latin-1 -*-\r\né = 1\r\n".encode("latin-1"))
    tree = tree_of(str(file))
    assert tree is not None
    assert tree.newline == "\r\n"
    assert isinstance(tree.root.body[0], ast.Assign)
    assert tree.source(tree.root.body[0]) == "é = 1"
    assert tree_of(str(file)) is tree
    file.write_text("changed = 12345\n")
    changed = tree_of(str(file))
    assert changed is not None and changed.text == "changed = 12345\n"
    file.write_text("not python (\n")
    assert tree_of(str(file)) is None
    assert tree_of(str(tmp_path / "nothing.py")) is None
    assert tree_of("<string>") is None
