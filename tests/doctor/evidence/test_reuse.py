import pytest

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.reuse import Reuse, find_reuse, shared_frame_line
from tests.doctor.conftest import Programs


def reuse_of(crash: Crash) -> Reuse:
    found = find_reuse(crash)
    assert found is not None
    return found


def line_of(crash: Crash, reuse: Reuse, *, carried: bool) -> int:
    joint = reuse.joints[0]
    node = joint.carried if carried else joint.consumer
    assert node is not None
    return crash.journal.stack_of_node(node._sequence_nr())[0].line


def test_the_freed_node_its_call_and_the_joint(programs: Programs) -> None:
    crash = programs.crash("""
        embed, head = nn.Embedding(4, 2), nn.Linear(2, 1)
        rows = embed(torch.arange(4))
        for step in range(3):
            loss = head(rows[step]).sum()
            loss.backward()
    """)
    reuse = reuse_of(crash)

    assert reuse.freed.name() == "EmbeddingBackward0"
    assert (reuse.freed_by.index, reuse.call.index, reuse.same_root) == (0, 1, False)
    assert reuse.joints[0].carried is reuse.freed
    assert line_of(crash, reuse, carried=True) == 5
    assert line_of(crash, reuse, carried=False) == 7


def test_one_loss_twice_has_no_joint(programs: Programs) -> None:
    reuse = reuse_of(
        programs.crash("""
            loss = nn.Linear(2, 1)(torch.ones(1, 2)).square().sum()
            loss.backward()
            loss.backward()
        """)
    )

    assert reuse.joints == ()
    assert reuse.same_root


def test_a_call_that_retained_the_graph_is_not_to_blame(programs: Programs) -> None:
    reuse = reuse_of(
        programs.crash("""
            loss = nn.Linear(2, 1)(torch.ones(1, 2)).square().sum()
            loss.backward(retain_graph=True)
            loss.backward()
            loss.backward()
        """)
    )

    assert (reuse.freed_by.index, reuse.call.index) == (1, 2)


def test_a_state_of_two_tensors_has_two_joints(programs: Programs) -> None:
    reuse = reuse_of(
        programs.crash("""
            cell, state = nn.LSTMCell(2, 3), None
            for _ in range(3):
                state = cell(torch.ones(1, 2), state)
                (state[0] * state[1]).sum().backward()
        """)
    )

    assert len({joint.carried for joint in reuse.joints}) == 2


def test_grad_frees_only_what_leads_to_its_inputs(programs: Programs) -> None:
    crash = programs.crash("""
        a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        first, second = a.exp(), b.exp()
        loss = (first * second).sum()
        torch.autograd.grad(loss, a)
        second.sum().backward()
        first.sum().backward()
    """)
    reuse = reuse_of(crash)

    assert (reuse.freed_by.index, reuse.call.index) == (0, 2)
    assert not reuse.freed_by.accumulate


STEADY = """
    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.01)
    for step in range(40):
        table = weight.exp() if step <= 20 else table
        loss = table.square().sum()
        loss.backward()
        optimizer.step()
"""
STATE = """
    cell = nn.GRUCell(2, 3)
    optimizer = torch.optim.SGD(cell.parameters(), lr=0.01)
    state = torch.zeros(1, 3)
    for step in range(40):
        state = cell(torch.ones(1, 2), state if step > 20 else state.detach())
        loss = state.square().sum()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(("text", "built", "used"), [(STEADY, 7, 8), (STATE, 8, 8)])
def test_late_in_a_run_without_marks(programs: Programs, text: str, built: int, used: int) -> None:
    crash = programs.crash(text)
    reuse = reuse_of(crash)

    assert not reuse.freed_by.marked
    assert (reuse.freed_by.index, reuse.call.index) == (20, 21)
    assert line_of(crash, reuse, carried=True) == built
    assert line_of(crash, reuse, carried=False) == used


def test_where_two_stacks_part(programs: Programs) -> None:
    crash = programs.crash("""
        weight = torch.ones(2, requires_grad=True)

        def outer():
            kept = inner()
            kept.sum().backward()
            kept.exp().sum().backward()

        def inner():
            return weight.exp()

        outer()
    """)
    joint = reuse_of(crash).joints[0]
    assert joint.consumer is not None
    stack_of = crash.journal.stack_of_node
    older = stack_of(joint.carried._sequence_nr())
    newer = stack_of(joint.consumer._sequence_nr())
    parted = shared_frame_line(older, newer)

    assert parted is not None
    assert [site.line for site in parted] == [7, 9]


def test_another_failure_is_no_reuse(programs: Programs) -> None:
    crash = programs.crash("torch.ones(2).sum().backward()")

    assert find_reuse(crash) is None
