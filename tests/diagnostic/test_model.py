from pathlib import Path

from gradwright.diagnostic import Diagnostic, ExceptionFacts, Label, Report, Span
from tests.diagnostic.samples import graph_used_twice


def bare(labels: tuple[Label, ...] = ()) -> Diagnostic:
    return Diagnostic("GW101", "graph-used-twice", "other", "error", "s", "w", labels)


def test_primary_is_the_marked_label() -> None:
    first = Label(Span("a.py", 1), "first", 1)
    marked = Label(Span("a.py", 2), "marked", 2, primary=True)
    assert bare((first, marked)).primary is marked


def test_primary_defaults_to_what_happened_first() -> None:
    later, earlier = Label(Span("a.py", 1), "b", 2), Label(Span("a.py", 2), "a", 1)
    assert bare((later, earlier)).primary is earlier
    assert bare().primary is None


def test_diagnostics_are_hashable_facts(tmp_path: Path) -> None:
    assert len({graph_used_twice(tmp_path), graph_used_twice(tmp_path)}) == 1


def test_str_is_the_text(tmp_path: Path) -> None:
    assert str(graph_used_twice(tmp_path)).startswith("error[GW101] graph used twice: `features`")
    assert "\x1b" not in str(graph_used_twice(tmp_path))


def test_a_notebook_shows_the_fragment(tmp_path: Path) -> None:
    fragment = graph_used_twice(tmp_path)._repr_html_()
    assert fragment.startswith('<div class="gradwright-diagnostic">')


def test_str_of_a_report_holds_all_diagnostics(tmp_path: Path) -> None:
    report = Report("t.py", "finished", None, 2, (graph_used_twice(tmp_path), bare()))
    assert str(report).count("[GW101]") == 2
    assert report._repr_html_().count("[GW101]") == 2


def test_a_report_without_findings_says_so_in_one_line() -> None:
    report = Report("t.py", "finished", None, 120, ())
    expected = "gradwright: nothing found. t.py ran to its end, 120 optimizer steps watched."
    assert str(report) == expected
    assert expected in report._repr_html_()


def test_a_report_of_an_unexplained_exception_names_its_place() -> None:
    facts = ExceptionFacts("ValueError", "bad\nvalue \x1b[31m", "t.py", 7)
    text = str(Report("t.py", "raised", facts, 0, ()))
    assert (
        text == "gradwright: no rule explains this. t.py:7 raised ValueError: bad value \\x1b[31m"
    )
