import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradwright.diagnostic import Diagnostic, Edit, Fix, Label, Span, render
from tests.diagnostic.samples import (
    GRAPH_USED_TWICE,
    SEVERED_GRAPH,
    graph_used_twice,
    severed_graph,
)

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def diagnostic(*labels: Label, fixes: tuple[Fix, ...] = (), context: str = "") -> Diagnostic:
    return Diagnostic(
        "GW000", "a-problem", "other", "warning", "it hurts", "", labels, fixes, context=context
    )


def body(found: Diagnostic, folder: Path, **options: int | str) -> list[str]:
    """The rows between the header and the last line."""
    width, encoding = int(options.get("width", 100)), str(options.get("encoding", "utf-8"))
    columns = int(options["columns"]) if "columns" in options else None
    text = render(found, width=width, columns=columns, cwd=folder, encoding=encoding)
    return text.split("\n")[2:-2]


def one_line(
    folder: Path, source: str, start: int, end: int | None, **options: int | str
) -> list[str]:
    """The code row and the mark row of a program of one line."""
    file = folder / "t.py"
    file.write_bytes(source.encode("utf-8", "surrogateescape") + b"\n")
    found = diagnostic(Label(Span(str(file), 1, start, 1, end), "here", 1, primary=True))
    return body(found, folder, **options)[1:]


def test_picture_graph_used_twice(tmp_path: Path) -> None:
    assert render(graph_used_twice(tmp_path), cwd=tmp_path) == GRAPH_USED_TWICE


def test_picture_severed_graph(tmp_path: Path) -> None:
    assert render(severed_graph(tmp_path), cwd=tmp_path) == SEVERED_GRAPH


def test_ascii_picture_has_the_same_shape(tmp_path: Path) -> None:
    text = render(graph_used_twice(tmp_path), cwd=tmp_path, encoding="ascii")
    assert text == GRAPH_USED_TWICE.translate(str.maketrans("│⋮─", "|:-"))


@pytest.mark.parametrize("columns", [None, 60, 100])
def test_color_adds_only_escape_codes(tmp_path: Path, columns: int | None) -> None:
    found = graph_used_twice(tmp_path)
    painted = render(found, color=True, columns=columns, cwd=tmp_path)
    assert "\x1b[1;31merror[GW101]\x1b[0m" in painted
    assert ANSI.sub("", painted) == render(found, columns=columns, cwd=tmp_path)


def test_a_terminal_keeps_prose_source_and_labels_within_its_columns(tmp_path: Path) -> None:
    rows = render(severed_graph(tmp_path), columns=70, cwd=tmp_path).split("\n")
    diff = [row for row in rows if re.match(r" {7}\d+ [-+]", row)]  # kept whole, for copying
    assert [row for row in rows if len(row) > 70 and row not in diff] == []


def test_prose_broken_for_a_wide_page_flows_on_a_narrow_one(tmp_path: Path) -> None:
    text = render(graph_used_twice(tmp_path), width=80, cwd=tmp_path)
    assert "rebuilds the MMoE part for\n     each batch; line 27 runs once, so" in text


def test_each_file_has_its_block_in_the_order_of_events(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\n")
    (tmp_path / "b.py").write_text("\ntwo\n")
    found = diagnostic(
        Label(Span(str(tmp_path / "a.py"), 1), "second", 2),
        Label(Span(str(tmp_path / "b.py"), 2), "first", 1),
        fixes=(Fix("change one", (Edit(str(tmp_path / "a.py"), 1, 1, "ONE\n"),)),),
    )
    assert body(found, tmp_path) == [
        "   b.py",
        " 2 │ two",
        "   │ ───  1 first",
        "",
        "   a.py",
        " 1 │ one",
        "   │ ───  2 second",
        "",
        "fix  change one:",
        "     a.py",
        "        1 - one",
        "        1 + ONE",
    ]


def test_a_label_over_several_lines_is_marked_at_both_ends(tmp_path: Path) -> None:
    file = tmp_path / "t.py"
    file.write_text("out = model(\n    x,\n)\n")
    found = diagnostic(Label(Span(str(file), 1, 6, 3, 1), "this call", 1, primary=True))
    assert body(found, tmp_path)[1:] == [
        " 1 │ out = model(",
        "   │       ^^^^^^",
        " 2 │     x,",
        " 3 │ )",
        "   │ ^  1 this call",
    ]


def test_a_long_span_shows_its_ends_only(tmp_path: Path) -> None:
    file = tmp_path / "t.py"
    file.write_text("with x:\n" + "    y\n" * 998 + "    z  \n")
    found = diagnostic(Label(Span(str(file), 1, 0, 1000), "this block", 1))
    assert body(found, tmp_path)[1:] == [
        "   1 │ with x:",
        "     │ ───────",
        "     ⋮",
        "1000 │     z",
        "     │     ─  1 this block",
    ]


def test_without_source_a_label_tells_its_place(tmp_path: Path) -> None:
    file = tmp_path / "t.py"
    file.write_text("x\n")
    found = diagnostic(
        Label(Span("<string>", 3), "made code", 1),
        Label(Span(str(file), 1), "shown", 2),
        Label(Span(str(file), 9), "the file is shorter now", 3),
        context="in step 3",
    )
    assert body(found, tmp_path) == [
        "   in step 3",
        "   <string>:3  1 made code",
        "",
        "   t.py",
        " 1 │ x",
        "   │ ─  2 shown",
        "   t.py:9  3 the file is shorter now",
    ]


def test_without_labels_the_tensors_are_named() -> None:
    found = Diagnostic(
        "GW203",
        "b",
        "other",
        "note",
        "s",
        "w",
        (),
        affected=("a.weight", "b.bias"),
        context="step 1",
    )
    assert render(found).split("\n")[1:4] == ["", "   step 1", "   a.weight, b.bias"]


def test_a_fix_without_edits_is_its_title() -> None:
    found = diagnostic(fixes=(Fix("wait"), Fix("look elsewhere:")))
    assert "\n\nfix  wait\n\nor   look elsewhere\n\nmore" in render(found)


def test_edits_of_unreadable_files_show_what_to_write() -> None:
    found = diagnostic(fixes=(Fix("write", (Edit("<string>", 2, 2, "x = 1\n"),)),))
    assert "        2 - ...\n        2 + x = 1" in render(found)


@pytest.mark.parametrize(
    ("source", "start", "end", "code", "mark"),
    [
        pytest.param("\tx = 1", 1, 2, "    x = 1", "    ^", id="tab"),
        pytest.param("x\t= 1", 2, 3, "x   = 1", "    ^", id="inner-tab"),
        pytest.param("x = '漢字' + y", 11, 12, "x = '漢字' + y", "             ^", id="wide"),
        pytest.param("e\u0301 = y", 5, 6, "e\u0301 = y", "    ^", id="combining"),
        pytest.param("'\x1b[31m' + y", 10, 11, "'\\x1b[31m' + y", "             ^", id="ansi"),
        pytest.param("'\u202e' + y", 6, 7, "'\\u202e' + y", "           ^", id="bidi"),
        pytest.param("a\x00b", 0, None, "a\\x00b", "^^^^^^", id="nul"),
        pytest.param("    x = 1   ", 0, None, "    x = 1", "    ^^^^^", id="to-end-of-text"),
        pytest.param("x", 70, 90, "x", " ^", id="beyond-the-line"),
        pytest.param("x", 0, 0, "x", "^", id="empty-span"),
    ],
)
def test_marks_stand_under_their_columns(
    tmp_path: Path, source: str, start: int, end: int | None, code: str, mark: str
) -> None:
    assert one_line(tmp_path, source, start, end) == [f" 1 │ {code}", f"   │ {mark}  1 here"]


def test_characters_a_stream_lacks_are_escaped(tmp_path: Path) -> None:
    rows = one_line(tmp_path, "é = 漢", 4, 5, encoding="latin-1")
    assert rows == [" 1 | é = \\u6f22", "   |     ^^^^^^  1 here"]


def test_a_blank_line_leaves_no_space_at_its_end(tmp_path: Path) -> None:
    assert one_line(tmp_path, "   ", 0, None) == [" 1 │", "   │ ^  1 here"]


def test_a_long_line_is_clipped_at_its_end(tmp_path: Path) -> None:
    code, mark = one_line(tmp_path, "x = y + " + "z" * 200, 4, 5, width=45)
    assert code == " 1 │ x = y + " + "z" * 31 + "…"
    assert mark == "   │     ^  1 here"


def test_a_line_of_ten_megabytes_is_clipped_around_the_mark(tmp_path: Path) -> None:
    source = "a" * 5_000_000 + "MARK" + "b" * 5_000_000
    code, mark = one_line(tmp_path, source, 5_000_000, 5_000_004, width=45)
    assert code == " 1 │ …" + "a" * 13 + "MARK" + "b" * 21 + "…"
    assert mark == "   │ " + " " * 14 + "^^^^  1 here"


def test_a_million_combining_characters_do_not_flood(tmp_path: Path) -> None:
    code, _ = one_line(tmp_path, "x" + "\u0301" * 1_000_000, 0, 1, width=45)
    assert len(code) < 1000


def test_a_change_far_into_a_line_is_in_view(tmp_path: Path) -> None:
    file = tmp_path / "t.py"
    file.write_text("x = [" + "1, " * 3000 + "2]\n")
    new = "x = [" + "1, " * 3000 + "3]\n"
    text = render(diagnostic(fixes=(Fix("three", (Edit(str(file), 1, 1, new),)),)))
    old_row, new_row = (row for row in text.split("\n") if row.startswith("        1 "))
    assert old_row.endswith("1, 2]") and new_row.endswith("1, 3]")
    assert len(old_row) < 260


def test_nothing_raw_reaches_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b]0;x\x07\u202e\udc80\x9b"
    file = tmp_path / "t.py"
    file.write_bytes(evil.encode("utf-8", "surrogateescape"))
    found = Diagnostic(
        evil, evil, evil, "error", evil, evil,
        (Label(Span(str(file), 1), evil, 1), Label(Span(evil, 1), evil, 2)),
        (Fix(evil, (Edit(str(file), 1, 1, evil + "\n"), Edit(evil, 1, 1, evil + "\n"))),),
        evil, (evil,), {}, evil,
    )  # fmt: skip
    for text in (render(found), render(found, columns=40, encoding="cp1252")):
        assert [char for char in text if not char.isprintable() and char != "\n"] == []


@given(
    source=st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=150),
    columns=st.tuples(st.integers(0, 160), st.integers(0, 160)),
    width=st.integers(30, 80),
)
def test_any_line_fits_any_page(
    tmp_path_factory: pytest.TempPathFactory, source: str, columns: tuple[int, int], width: int
) -> None:
    rows = one_line(tmp_path_factory.mktemp("any"), source, *sorted(columns), width=width)
    assert rows[0].startswith(" 1 │")
    assert re.fullmatch(r"   │  *\^+  1 here", rows[1])
    assert rows[1].index("1 here") <= width + 5
