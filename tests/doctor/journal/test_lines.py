"""Every graph node has the line that made it: the truth is torch's anomaly mode."""

import re
import sys
import warnings
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from gradwright.doctor.journal import Journal, UserCode, timeline
from gradwright.graph import Node, is_accumulator, reachable
from tests.doctor.journal import scenarios
from tests.doctor.journal.scenarios import SCENARIOS, Block, helper, leaf

FRAME = re.compile(r'File "(.+)", line (\d+), in (\S+)')
OURS = (scenarios.__file__, __file__)
MONITORED = hasattr(sys, "monitoring")  # there nobody can take our place


@pytest.fixture
def journal() -> Iterator[Journal]:
    failures: list[BaseException] = []
    journal = Journal(UserCode(), failures.append)
    journal.start(sys._getframe())
    yield journal
    journal.stop()
    assert failures == []


@pytest.mark.parametrize("name", SCENARIOS)
def test_lines_are_those_of_anomaly_mode(journal: Journal, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly(check_nan=False):
            roots = SCENARIOS[name]()
    journal.stop()

    nodes = nodes_of(roots)
    assert nodes
    for node in nodes:
        assert seen(journal, node) == truth(node), node.name()


def test_recomputed_nodes_lie_on_their_own_line_or_on_the_backward(journal: Journal) -> None:
    found: list[Node] = []
    here = sys._getframe().f_code

    class Peeking(Block):
        def forward(self, x: Tensor) -> Tensor:
            y = super().forward(x)
            if y.requires_grad:
                found.extend(nodes_of([y]))
            return y

    y = torch.utils.checkpoint.checkpoint(Peeking(), leaf(1, 2), use_reentrant=True)
    y.sum().backward()
    journal.stop()

    assert found
    for node in found:
        stack = journal.stack_of_node(node._sequence_nr())
        assert stack[0].function in ("Block.forward", "Peeking.forward")
        assert any(site.code is here for site in stack)


def test_nodes_from_before_are_made_nowhere() -> None:
    old = leaf() * 2
    journal = Journal(UserCode(), lambda error: pytest.fail(repr(error)))
    journal.start(sys._getframe())
    new = leaf() * 3
    journal.stop()
    late = leaf() * 4

    assert journal.stack_of_node(number(old)) == ()
    assert journal.stack_of_node(number(new))
    assert journal.stack_of_node(number(late)) == ()


def test_nodes_of_the_forgotten_middle_are_made_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("HEAD", 20), ("TAIL", 20), ("MOST", 60)):
        monkeypatch.setattr(timeline, name, value)
    journal = Journal(UserCode(), lambda error: pytest.fail(repr(error)))
    journal.start(sys._getframe())
    made = []
    for turn in range(200):
        if turn % 2:
            made.append(helper(leaf()))
        else:
            made.append(leaf() * 2)
    journal.stop()

    stacks = [journal.stack_of_node(number(tensor)) for tensor in made]
    assert stacks[0] and stacks[-1] and not stacks[100]
    for turn, stack in enumerate(stacks):
        assert not stack or (stack[0].function == "helper") == bool(turn % 2)


def test_create_graph_nodes_lie_on_the_line_that_asked(journal: Journal) -> None:
    x = leaf()
    (gradient,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    line = sys._getframe().f_lineno - 1
    journal.stop()

    assert {
        seen(journal, node)[0][0] for node in nodes_of([gradient]) if "Pow" not in node.name()
    } <= {line}


def test_a_compiled_region_lies_on_the_line_that_called_it(journal: Journal) -> None:
    compiled = torch.compile(helper, backend="aot_eager")
    y = compiled(leaf())
    line = sys._getframe().f_lineno - 1
    before = journal.operations.count
    (y * 2).sum()
    journal.stop()
    torch._dynamo.reset()  # else later tests run in a process that has compiled functions

    assert y.grad_fn is not None
    assert line in {site.line for site in journal.stack_of_node(number(y))}
    assert journal.operations.count == before


def test_a_debugger_that_takes_over_leaves_no_wrong_lines(journal: Journal) -> None:
    ours = sys.gettrace()
    x = leaf() * 2
    sys.settrace(None)
    y = x + 1
    line = sys._getframe().f_lineno - 1
    y.sum().backward()
    sys.settrace(ours)
    journal.stop()

    call = journal.calls[0]
    assert call is not None
    found = [journal.stack_of_node(number(y)), journal.places.stack(call.place)]
    assert journal.stack_of_node(number(x))
    if MONITORED:
        assert [stack[0].line for stack in found] == [line, line + 2]
    else:
        assert found == [(), ()]


def test_a_step_that_raises_leaves_no_wrong_lines(journal: Journal) -> None:
    weight = leaf()
    optimizer = torch.optim.SGD([weight], lr=0.1)
    weight.grad = torch.ones(2)
    optimizer.param_groups[0]["lr"] = "no number"
    with pytest.raises((TypeError, RuntimeError, ValueError)):
        optimizer.step()
    x = weight * 2
    x.sum().backward()
    y = weight * 3
    line = sys._getframe().f_lineno - 1
    journal.stop()

    assert [site.line for site in journal.stack_of_node(number(x))[:1]] == [line - 2] * MONITORED
    assert journal.stack_of_node(number(y))[0].line == line


def nodes_of(roots: list[Tensor]) -> list[Node]:
    nodes = reachable(root.grad_fn for root in roots if root.grad_fn is not None)
    return [node for node in nodes if not is_accumulator(node)]


def number(tensor: Tensor) -> int:
    assert tensor.grad_fn is not None
    return tensor.grad_fn._sequence_nr()


def seen(journal: Journal, node: Node) -> list[tuple[int, str]]:
    sites = journal.stack_of_node(node._sequence_nr())
    kept = [site for site in sites if site.file in OURS or site.file.startswith("<")]
    return [(site.line, site.function.rpartition(".")[2]) for site in kept]


def truth(node: Node) -> list[tuple[int, str]]:
    frames = FRAME.findall("".join(node.metadata["traceback_"]))  # type: ignore[index]
    kept = [
        (line, name) for file, line, name in frames if file in OURS or file.startswith(("<i", "<s"))
    ]
    return [(int(line), name) for line, name in reversed(kept)]
