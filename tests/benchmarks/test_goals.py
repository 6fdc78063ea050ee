"""The goals of `benchmarks/many_losses.py`, and how its figures are judged and printed."""

import json

import pytest

from benchmarks._goals import Figure, in_peak, in_time, is_met, peak_goal, time_goal
from benchmarks._table import table
from benchmarks.many_losses import merged, read


def figure(name: str, time: float = 4.0, peak: float = 2.0, spread: float = 0.1) -> Figure:
    return Figure("W1", 8, "MGDA", name, time - spread, time, time + spread, peak)


@pytest.mark.parametrize(
    ("name", "n_tasks", "goal"),
    [
        ("ours-losses", 8, 1.03),
        ("ours-rows", 8, 1.15 * 17 / 3),
        ("ours-rows", 2, 1.15 * 5 / 3),
        ("ours-lean", 8, 1.15 * 19 / 3),
        ("ours-auto", 8, None),
        ("libmtl", 8, None),
    ],
)
def test_time_goal(name: str, n_tasks: int, goal: float | None) -> None:
    assert time_goal(name, n_tasks) == (goal if goal is None else pytest.approx(goal))


@pytest.mark.parametrize(
    ("name", "workload", "n_tasks", "goal"),
    [
        ("ours-losses", "W2", 20, 1.0),
        ("ours-lean", "W1", 8, 1.4),
        ("ours-lean", "W2", 8, 1.35),
        ("ours-lean", "W2", 20, 1.8),
        ("ours-lean", "W3", 8, 1.6),
        ("ours-lean", "W3", 40, 2.0),
        ("ours-lean", "W1", 2, None),
        ("ours-rows", "W1", 8, None),
        ("torchjd-losses", "W1", 8, None),
    ],
)
def test_peak_goal(name: str, workload: str, n_tasks: int, goal: float | None) -> None:
    assert peak_goal(name, workload, n_tasks) == goal


def test_a_goal_is_met_as_printed() -> None:
    assert is_met(1.0349, 1.03)
    assert not is_met(1.0351, 1.03)


def test_time_is_level_where_a_median_was_seen_of_the_other() -> None:
    ours = figure("ours-rows", time=4.0)
    assert in_time(ours, figure("libmtl", time=4.05)) == "level"
    assert in_time(ours, figure("libmtl", time=3.95)) == "level"
    assert in_time(ours, figure("libmtl", time=4.2, spread=0.3)) == "level"
    assert in_time(ours, figure("libmtl", time=4.2)) == "ahead"
    assert in_time(ours, figure("libmtl", time=3.8)) == "behind"


def test_peak_is_compared_as_printed() -> None:
    ours = figure("ours-lean", peak=1.181)
    assert in_peak(ours, figure("libmtl", peak=1.184)) == "level"
    assert in_peak(ours, figure("libmtl", peak=1.2)) == "ahead"
    assert in_peak(ours, figure("libmtl", peak=1.1)) == "behind"


def test_table_says_who_is_best_and_which_goals_are_met() -> None:
    lines = list(
        table(
            [
                figure("ours-rows", time=6.6, peak=1.7),
                figure("ours-lean", time=7.0, peak=1.2),
                figure("libmtl", time=6.0, peak=3.0),
                figure("torchjd-sequential", time=6.1, peak=2.0),
            ]
        )
    )
    assert lines[0].startswith("W1, 8 tasks, MGDA")
    assert "6.52 missed" in lines[2]
    assert "7.28 met" in lines[3]
    assert "1.40 met" in lines[3]
    assert lines[6:8] == [
        "  best time, gradients: ours-rows 6.60, libmtl 6.00: behind, missed",
        "  best peak, gradients: ours-lean 1.20, torchjd-sequential 2.00: ahead, met",
    ]


def test_losses_alone_have_peers_of_their_own() -> None:
    text = "\n".join(table([figure("ours-losses", time=1.0, peak=1.0), figure("libmtl")]))
    assert "best" not in text


def test_figures_of_several_runs_are_kept_and_the_newest_wins(tmp_path) -> None:
    old, other = figure("libmtl", time=9.0), figure("ours-rows")
    new = figure("libmtl", time=8.0)
    assert merged([old, other], [new]) == [new, other]
    file = tmp_path / "figures.json"
    assert read(file) == []
    entry = {field: getattr(new, field) for field in Figure.__slots__}
    file.write_text(json.dumps([entry]), encoding="utf-8")
    assert read(file) == [new]
