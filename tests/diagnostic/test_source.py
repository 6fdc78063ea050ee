import linecache
import os
from pathlib import Path

import pytest

from gradwright.diagnostic.source import lines_of


def lines_in(path: Path, data: bytes) -> list[str] | None:
    path.write_bytes(data)
    lines = lines_of(str(path))
    return None if lines is None else list(lines)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param("x = 'é'\n".encode(), ["x = 'é'"], id="utf-8"),
        pytest.param(b"\xef\xbb\xbfx = 1\n", ["x = 1"], id="bom"),
        pytest.param(
            b"# coding: latin-1\nx = '\xe9'\n", ["# coding: latin-1", "x = 'é'"], id="pep263"
        ),
        pytest.param(
            b"# coding: rot13\nx = 1\n", ["# coding: rot13", "x = 1"], id="not-a-text-codec"
        ),
        pytest.param(
            b"# coding: idna\nx = '\xff'\n", ["# coding: idna", "x = '�'"], id="odd-codec"
        ),
        pytest.param(b"# coding: nonsense\nx\n", ["# coding: nonsense", "x"], id="unknown-codec"),
        pytest.param(b"a\nb\nx = '\xff'\n", ["a", "b", "x = '�'"], id="undecodable"),
        pytest.param(b"\xff\xfe\x00\n", ["��\x00"], id="binary"),
        pytest.param(b"a\r\nb\rc\nd", ["a", "b", "c", "d"], id="line-ends"),
        pytest.param(b"a\x0cb\x1cc\n", ["a\x0cb\x1cc"], id="form-feed-ends-no-line"),
        pytest.param("a = '\u2028\x85'\nb\n".encode(), ["a = '\u2028\x85'", "b"], id="separators"),
        pytest.param(b"a\n\n", ["a", ""], id="blank-last-line"),
        pytest.param(b"", [], id="empty"),
    ],
)
def test_lines_are_those_python_counts(tmp_path: Path, data: bytes, expected: list[str]) -> None:
    assert lines_in(tmp_path / "train.py", data) == expected


@pytest.mark.parametrize(
    "file", ["", "<string>", "/nowhere/train.py", "a\0b", "<ipython-input-1-x>"]
)
def test_no_source_is_none(file: str) -> None:
    assert lines_of(file) is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_a_folder_or_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # reading it would wait forever
    assert lines_of(str(tmp_path)) is None
    assert lines_of(str(tmp_path / "pipe")) is None


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    assert lines_in(tmp_path / "train.py", b"a\n") == ["a"]
    assert lines_in(tmp_path / "train.py", b"longer\n") == ["longer"]


@pytest.mark.parametrize("file", ["<ipython-input-3-abc>", "/made/up/ipykernel_1/2.py"])
def test_cells_and_made_code_come_from_linecache(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = (7, None, ["x = 1\n", "y = 2"], file)
    monkeypatch.setitem(linecache.cache, file, entry)
    assert lines_of(file) == ("x = 1", "y = 2")
