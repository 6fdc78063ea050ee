from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradwright.diagnostic import Edit, EditError, Fix, apply, apply_to_files, edits_between
from gradwright.diagnostic.diff import DiffRow, diff_rows

TEXT = "a\nb\nc\nd\n"


def edit(line: int, end_line: int, replacement: str) -> Edit:
    return Edit("t.py", line, end_line, replacement)


@pytest.mark.parametrize(
    ("text", "edits", "expected"),
    [
        pytest.param(TEXT, [], TEXT, id="none"),
        pytest.param(TEXT, [edit(2, 3, "x\n")], "a\nx\nd\n", id="replace"),
        pytest.param(TEXT, [edit(2, 2, "")], "a\nc\nd\n", id="delete"),
        pytest.param(TEXT, [edit(2, 2, "b\nx\n")], "a\nb\nx\nc\nd\n", id="insert"),
        pytest.param(TEXT, [edit(4, 4, "z\n"), edit(1, 1, "")], "b\nc\nz\n", id="any-order"),
        pytest.param("a\r\nb\r\n", [edit(1, 1, "x\ny\n")], "x\r\ny\r\nb\r\n", id="crlf"),
        pytest.param("a\r\nb\r\n", [edit(1, 1, "x\r\n")], "x\r\nb\r\n", id="crlf-given"),
        pytest.param("a\rb\r", [edit(2, 2, "x\n")], "a\rx\r", id="cr"),
        pytest.param("a\nb", [edit(2, 2, "x\ny\n")], "a\nx\ny", id="open-end"),
        pytest.param("a\r\nb", [edit(2, 2, "x\ny\n")], "a\r\nx\r\ny", id="open-end-crlf"),
        pytest.param(
            "a\x0cb\u2028\nc\n", [edit(2, 2, "x\n")], "a\x0cb\u2028\nx\n", id="odd-spaces"
        ),
    ],
)
def test_apply(text: str, edits: list[Edit], expected: str) -> None:
    assert apply(text, edits) == expected


@pytest.mark.parametrize(
    ("edits", "reason"),
    [
        pytest.param([edit(4, 5, "x\n")], "within 1..4", id="below-the-end"),
        pytest.param([edit(0, 1, "x\n")], "within 1..4", id="line-0"),
        pytest.param([edit(3, 2, "x\n")], "within 1..4", id="backwards"),
        pytest.param([edit(1, 2, "x\n"), edit(2, 3, "y\n")], "overlaps", id="overlap"),
        pytest.param([edit(1, 1, "x")], "newline at its end", id="no-newline"),
    ],
)
def test_edits_that_do_not_fit_are_refused(edits: list[Edit], reason: str) -> None:
    with pytest.raises(EditError, match=reason):
        apply(TEXT, edits)


lines = st.lists(st.sampled_from(["a", "b", "c", "", "  é", "\x0c"]), max_size=12)


@given(lines, lines, st.sampled_from(["\n", "\r\n", "\r"]))
def test_edits_between_two_texts_lead_from_one_to_the_other(
    old: list[str], new: list[str], end: str
) -> None:
    before, after = ("".join(line + end for line in text) for text in (old, new))
    if before:
        assert apply(before, edits_between("t.py", before, after)) == after


@given(lines, lines)
def test_open_texts_have_edits_too(old: list[str], new: list[str]) -> None:
    before, after = "\n".join([*old, "end"]), "\n".join([*new, "end"])
    assert apply(before, edits_between("t.py", before, after)) == after


@pytest.mark.parametrize(("old", "new"), [("", "a\n"), ("a\n", "a"), ("a\n", "a\r\n")])
def test_texts_without_edits_between_them(old: str, new: str) -> None:
    with pytest.raises(EditError, match="end alike"):
        edits_between("t.py", old, new)


@given(lines, lines)
def test_the_rows_of_a_diff_are_all_it_takes(old: list[str], new: list[str]) -> None:
    """Taking out the - rows by number leaves the lines that both texts share, in order."""
    source = ["keep", *old, "keep"]
    replacement = "".join(line + "\n" for line in ["keep", *new, "keep"])
    rows = diff_rows(Edit("t.py", 1, len(source), replacement), source)
    taken = {row.number for row in rows if row.sign == "-"}
    left = [line for number, line in enumerate(source, 1) if number not in taken]
    added = [row.text for row in rows if row.sign == "+"]
    assert all(source[row.number - 1] == row.text for row in rows if row.sign == "-")
    assert sorted([*left, *added]) == sorted(["keep", *new, "keep"])


def test_rows_carry_original_numbers() -> None:
    rows = diff_rows(edit(5, 7, "a\nx\nc\nnew\n"), ["", "", "", "", "a", "b", "c"])
    assert rows == [DiffRow(6, "-", "b", 0), DiffRow(6, "+", "x", 0), DiffRow(8, "+", "new", 0)]


def test_files_are_edited_in_their_own_encoding_and_not_written(tmp_path: Path) -> None:
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_bytes(b"# coding: latin-1\r\nx = '\xe9'\r\n")
    two.write_bytes(b"\xef\xbb\xbfa\nb\n")
    fix = Fix("both", (Edit(str(one), 2, 2, "x = 'é!'\n"), Edit(str(two), 1, 1, "")))
    assert apply_to_files(fix) == {str(one): "# coding: latin-1\r\nx = 'é!'\r\n", str(two): "b\n"}
    assert one.read_bytes() == b"# coding: latin-1\r\nx = '\xe9'\r\n"


@pytest.mark.parametrize(
    ("data", "replacement"),
    [
        pytest.param(b"a\nb\n'\xff'\n", "x\n", id="undecodable"),
        pytest.param(b"# coding: latin-1\nb\n", "漢\n", id="unencodable"),
    ],
)
def test_a_file_that_cannot_be_kept_whole_is_not_edited(
    tmp_path: Path, data: bytes, replacement: str
) -> None:
    (tmp_path / "t.py").write_bytes(data)
    with pytest.raises(EditError, match="encoding"):
        apply_to_files(Fix("no", (Edit(str(tmp_path / "t.py"), 2, 2, replacement),)))


@pytest.mark.parametrize("file", ["<string>", "/nowhere/t.py", "a\0b"])
def test_code_without_a_file_is_not_edited(file: str) -> None:
    with pytest.raises(EditError, match="by hand"):
        apply_to_files(Fix("no", (Edit(file, 1, 1, "x\n"),)))
