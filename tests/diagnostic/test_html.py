import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

from gradwright.diagnostic import Diagnostic, Edit, Fix, Label, Report, Span
from gradwright.diagnostic.html import render, render_report
from tests.diagnostic.samples import graph_used_twice

TAG = re.compile(r"<[^>]*>")


class Tags(HTMLParser):
    """The tags of a fragment that are open at its end, and all that occur."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag not in ("br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_picture_is_whole_and_balanced(tmp_path: Path) -> None:
    fragment = render(graph_used_twice(tmp_path), tmp_path)
    text = unescape(TAG.sub("", fragment))
    assert "   │         ^^^^^^^^^^^^^^^  4 backward call 2 needed them again" in text
    assert "       31 +         out = model(embed(ids[batch]))" in text
    assert "<code>retain_graph=True</code>: the error goes away" in fragment
    assert Tags(fragment).open == []


def test_everything_from_the_program_is_escaped(tmp_path: Path) -> None:
    evil = "<script>alert('&')</script>`\"<b>"
    file = tmp_path / "<script>.py"
    file.write_text(evil + "\n")
    found = Diagnostic(
        evil, evil, evil, "error", evil, evil,
        (Label(Span(str(file), 1), evil, 1), Label(Span(evil, 1), evil, 2)),
        (Fix(evil, (Edit(str(file), 1, 1, evil * 2 + "\n"),)),),
        evil, (evil,), {}, evil,
    )  # fmt: skip
    tags = Tags(render(found, tmp_path))
    assert tags.open == []
    assert tags.seen <= {"div", "span", "pre", "b", "br", "code"}
    assert unescape(TAG.sub("", render(found, tmp_path))).count("<script>alert") >= 8


def test_nothing_is_loaded_from_elsewhere(tmp_path: Path) -> None:
    fragment = render(graph_used_twice(tmp_path), tmp_path)
    assert re.findall(r"src=|href=|url\(|<script|<style", fragment) == []


def test_a_report_shows_all(tmp_path: Path) -> None:
    found = graph_used_twice(tmp_path)
    report = Report("t.py", "finished", None, 1, (found, found))
    assert render_report(report, tmp_path).count("error[GW101]") == 2


def test_a_report_without_findings_is_one_line() -> None:
    fragment = render_report(Report("/p/a&b.py", "stopped", None, 1, ()), Path("/p"))
    assert "nothing found. a&amp;b.py was stopped, 1 optimizer step watched." in fragment
