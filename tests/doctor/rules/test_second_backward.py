"""What the rules about a second backward say: lines, words and numbers."""

import pytest

from gradwright.diagnostic import Diagnostic
from gradwright.doctor.diagnose import diagnose
from tests.doctor.conftest import Programs


def explained(programs: Programs, text: str) -> Diagnostic:
    failures: list[BaseException] = []
    found = diagnose(programs.crash(text), failures.append)
    assert (failures, len(found)) == ([], 1)
    return found[0]


TABLE = """
    embed, head = nn.Embedding(4, 2), nn.Linear(2, 1)
    table = embed(torch.arange(4))
    for step in range(3):
        loss = head(table[step]).sum()
        loss.backward()
"""
CACHE = """
    from functools import cache
    decay = nn.Parameter(torch.ones(1))

    @cache
    def kernel(length):
        return torch.exp(-decay * torch.arange(length))

    for step in range(3):
        loss = kernel(4).square().sum()
        loss.backward()
"""
STATE = """
    cell, state = nn.RNNCell(2, 2), torch.zeros(1, 2)
    for step in range(3):
        state = cell(torch.ones(1, 2), state)
        loss = state.exp().sum()
        loss.backward()
"""
DROPPED = """
    cell, state = nn.RNNCell(2, 2), torch.zeros(1, 2)
    for step in range(3):
        state = cell(torch.ones(1, 2), state)
        state.exp().sum().backward()
        state.detach()
"""
HELPER = """
    def settle(state):
        return state

    cell, state = nn.RNNCell(2, 2), torch.zeros(1, 2)
    for step in range(3):
        state = settle(state)
        state = cell(torch.ones(1, 2), state)
        state.exp().sum().backward()
"""
LOSSES = """
    trunk = nn.Linear(2, 2)
    shared = trunk(torch.ones(1, 2)).exp()
    for loss in [shared.sum(), shared.square().sum()]:
        loss.backward()
"""
FAKE = """
    maker, judge = nn.Linear(2, 2), nn.Linear(2, 1)
    judges = torch.optim.SGD(judge.parameters(), lr=0.1)
    fake = maker(torch.ones(1, 2))
    judged = judge(fake).sum()
    judged.backward()
    judges.step()
    judge(fake).square().sum().backward()
"""
SLOPE = """
    net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
    x = torch.ones(1, 2, requires_grad=True)
    y = net(x).sum()
    slope, = torch.autograd.grad(y, x)
    loss = slope.sum() + y
    loss.backward()
"""
LIST = """
    policy, chances = nn.Linear(2, 1), []
    for step in range(3):
        chances.append(policy(torch.ones(2)).exp())
        loss = torch.stack(chances).sum()
        loss.backward()
"""

# code, line to look at, the line of each label, names of the parameters concerned
FACTS: dict[str, tuple[str, str, int, list[int], tuple[str, ...]]] = {
    "table": (TABLE, "GW101", 5, [5, 7, 8, 8], ("embed.weight",)),
    "cache": (CACHE, "GW101", 7, [7, 9, 12, 13, 13], ("decay",)),
    "state": (STATE, "GW102", 6, [6, 6, 8, 8], ("cell.weight_ih", "cell.weight_hh")),
    "dropped": (DROPPED, "GW102", 8, [6, 8, 6, 7, 7], ("cell.weight_ih", "cell.weight_hh")),
    "helper": (HELPER, "GW102", 5, [10, 5, 10, 11, 11], ("cell.weight_ih", "cell.weight_hh")),
    "losses": (LOSSES, "GW103", 7, [5, 7, 7], ("trunk.weight", "trunk.bias")),
    "fake": (FAKE, "GW103", 7, [6, 7, 8, 10], ("maker.weight", "maker.bias")),
    "slope": (SLOPE, "GW103", 7, [6, 7, 9], ("net.0.weight", "net.0.bias")),
    "list": (LIST, "GW104", 7, [6, 7, 8, 8], ("policy.weight", "policy.bias")),
}


@pytest.mark.parametrize(
    ("text", "code", "primary", "lines", "affected"), FACTS.values(), ids=FACTS
)
def test_lines_and_parameters(
    programs: Programs,
    text: str,
    code: str,
    primary: int,
    lines: list[int],
    affected: tuple[str, ...],
) -> None:
    found = explained(programs, text)

    assert found.primary is not None
    assert (found.code, found.primary.span.line) == (code, primary)
    assert [label.span.line for label in found.labels] == lines
    assert found.affected[:2] == affected


SUMMARIES = [
    (TABLE, "`table` was built once, and a second backward needs it"),
    (CACHE, "the result of `kernel` was built once, and a second backward needs it"),
    (STATE, "`state` goes into the next step with its graph attached"),
    (LOSSES, "two losses need the graph of `shared`, and each has its own backward"),
    (FAKE, "the first loss reaches through `fake` into what the second loss trains"),
    (SLOPE, "`grad` used up the graph of `y`, and the loss needs it"),
    (LIST, "`chances` still holds 1 tensor of an earlier step"),
]


@pytest.mark.parametrize(("text", "summary"), SUMMARIES)
def test_summary_in_the_words_of_the_program(programs: Programs, text: str, summary: str) -> None:
    assert explained(programs, text).summary == summary


def test_several_old_tensors_are_counted(programs: Programs) -> None:
    twice = LIST.replace(
        "chances.append(policy(torch.ones(2)).exp())",
        "chances.extend(policy(torch.ones(2)).exp() for _ in range(2))",
    )
    found = explained(programs, twice)

    assert found.summary == "`chances` still holds 2 tensors of earlier steps"
    assert (found.measured["old"], found.measured["total"]) == (2, 4)
    assert "2 of its 4 tensors belong to a backward that has run" in found.why


def test_why_names_the_call_that_came_after_the_only_run(programs: Programs) -> None:
    assert "line 5 ran once, before backward call 1" in explained(programs, TABLE).why


def test_a_loss_used_twice_is_not_said_to_be_built_anew(programs: Programs) -> None:
    found = explained(
        programs,
        """
        loss = nn.Linear(2, 1)(torch.ones(2)).exp()
        loss.backward()
        loss.backward()
        """,
    )

    assert "Line 4 did not run again after backward call 1" in found.why


def test_retain_graph_is_never_the_first_advice(programs: Programs) -> None:
    for text in (TABLE, STATE, LIST, SLOPE, FAKE):
        found = explained(programs, text)
        assert found.avoid.startswith("`retain_graph=True`")
        assert "retain_graph" not in found.fixes[0].edits[0].replacement
