"""The report: its text, its picture."""

import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from gradwright.loops import Lags, LengthReport, Tried, measure_lengths
from tests.loops.segments.measure.recurrences import Linear, inputs

REPORT = LengthReport(
    times=64,
    budget=2_000_000,
    tried=(
        Tried(8, 51_200, True, True, 0.25, 0.97),
        Tried(16, 102_400, True, True, 0.0625, 0.998),
        Tried(64, 2_400_000, False, False, None, None),
    ),
    lags=Lags((1, 2, 4, 8), (2.0, 1.0, 0.5, 0.0001), (32, 63)),
)

TEXT = """\
64 times; 2.00 MB for what one segment saves for backward
  length      saved  fits      lost   cosine
       8    51.2 kB  yes     0.2500   0.9700
      16     102 kB  yes     0.0625   0.9980
      64   ~2.40 MB  no
~ not run: at least about so much, going by the two before
longest that fits: 16

gradient that reaches back so many times, in units of lag 1 (mean of 2 ends)
       1          1  ########################################
       2        0.5  ####################
       4       0.25  ##########
below 0.001 from 8 to 8"""


def test_text() -> None:
    assert str(REPORT) == TEXT
    assert REPORT.length == 16


def test_text_where_nothing_fits() -> None:
    report = LengthReport(8, 10, (Tried(1, 11, True, False, 0.5, 0.9),), None)
    assert report.length is None
    assert str(report).splitlines()[-1].startswith("no length fits")


def test_long_tables_of_lags_are_thinned() -> None:
    lags = tuple(range(1, 101))
    report = LengthReport(200, 10, (), Lags(lags, (1.0,) * 100, (199,)))
    rows = [line for line in str(report).splitlines() if line.endswith("#")]
    assert [int(row.split()[0]) for row in rows] == list(range(1, 101, 7))


def test_progress_is_told() -> None:
    lines: list[str] = []
    measure_lengths(Linear(0.5), inputs(8), "1 MB", lengths=[1, 2, 4], progress=lines.append)
    assert lines[:2] == ["segments of 1 times", "segments of 2 times"]
    assert lines[2].startswith("segments of 4 times: about ")
    assert lines[3:] == [f"lags 1 to 4, back from time {end}" for end in (4, 5, 6, 7)]


@pytest.mark.parametrize("report", [REPORT, LengthReport(8, 10, REPORT.tried[:1], None)])
def test_picture(report: LengthReport, tmp_path: Path) -> None:
    file = tmp_path / "lengths.png"
    figure = report.plot(file)
    content = file.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = (int.from_bytes(content[at : at + 4]) for at in (16, 20))
    assert width > 2 * height > 500
    assert len(figure.axes) == 2


def test_what_is_drawn() -> None:
    left, right = REPORT.plot().axes
    errors, fits = (np.asarray(line.get_xydata()).tolist() for line in left.get_lines())
    assert errors == [[8, 0.25], [16, 0.0625]]
    assert fits == [[16, 0], [16, 1]]  # from the bottom of the panel to its top
    lags = np.asarray(right.get_lines()[0].get_xydata()).tolist()
    assert lags == [[1, 1.0], [2, 0.5], [4, 0.25], [8, 0.00005]]


def test_into_axes_that_are_there() -> None:
    figure = Figure()
    left, right = figure.subplots(2, 1)
    assert REPORT.plot(axes=(left, right)) is figure
    assert left.get_lines()
    assert right.get_lines()


def test_nothing_to_draw_is_no_error(tmp_path: Path) -> None:
    lags = Lags((1, 2), (0.0, 0.0), (3,))
    LengthReport(4, 1, REPORT.tried[2:], lags).plot(tmp_path / "empty.png")
    assert (tmp_path / "empty.png").stat().st_size > 1000


def test_matplotlib_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ModuleNotFoundError, match="pip install matplotlib"):
        REPORT.plot()
