import pytest

from gradwright.diagnostic import Span
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.spans import (
    span_of_frame,
    span_of_node,
    span_of_operation,
    span_of_site,
)
from gradwright.doctor.journal import Site
from tests.doctor.conftest import Programs

TEXT = """
    net = nn.Linear(2, 2)
    loss = (net(torch.ones(1, 2)).exp() + 1).sum()
    loss.backward()
    for part in loss.backward():
        pass
"""


def text_of(crash: Crash, span: Span) -> str:
    with open(crash.user_frames[-1].file, encoding="utf-8") as stream:
        lines = stream.read().splitlines()
    assert span.end_line in (None, span.line)
    return lines[span.line - 1][span.column : span.end_column]


def site(crash: Crash, line: int) -> Site:
    frame = crash.user_frames[-1]
    return Site(frame.file, line, "<module>", frame.code)


@pytest.fixture
def crash(programs: Programs) -> Crash:
    return programs.crash(TEXT)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (5, "(net(torch.ones(1, 2)).exp() + 1).sum()"),
        (6, "loss.backward()"),
        (7, "loss.backward()"),
    ],
)
def test_a_line_is_shown_by_what_computes(crash: Crash, line: int, text: str) -> None:
    assert text_of(crash, span_of_site(site(crash, line))) == text


def test_a_frame_is_shown_by_its_very_call(crash: Crash) -> None:
    assert text_of(crash, span_of_frame(crash.user_frames[-1])) == "loss.backward()"


def test_a_node_is_shown_by_the_operation_that_made_it(crash: Crash) -> None:
    (root,) = crash.root_nodes()
    add = root.next_functions[0][0]
    assert add is not None
    exponential = add.next_functions[0][0]
    assert exponential is not None

    span = span_of_node(crash.journal, exponential, site(crash, 5))

    assert text_of(crash, span) == "net(torch.ones(1, 2)).exp()"


def test_an_operation_is_shown_by_its_call(crash: Crash) -> None:
    operation = crash.journal.operations.of(crash.roots()[0])
    assert operation is not None
    span = span_of_operation(crash.journal, operation)

    assert span is not None
    assert text_of(crash, span).endswith(".sum()")


def test_without_source_the_line_is_enough(crash: Crash) -> None:
    code = crash.user_frames[-1].code
    gone = Site("gone.py", 3, "f", code)

    assert span_of_site(gone) == Span("gone.py", 3)
    assert span_of_site(site(crash, 999)) == Span(crash.user_frames[-1].file, 999)
