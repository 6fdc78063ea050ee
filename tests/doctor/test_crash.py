"""What a crash knows: frames, roots and inputs of the engine call, exceptions behind exceptions."""

import pytest

from gradwright.doctor.crash import Crash, chain
from tests.doctor.conftest import Programs

TWICE = """
    def train(step):
        loss = weight.exp().sum() * step
        loss.backward()
        {}

    weight = torch.ones(2, requires_grad=True)
    train(1)
"""


def test_frames_of_the_user_and_of_torch(programs: Programs) -> None:
    crash = programs.crash(TWICE.format("loss.backward()"))
    assert crash.raised_at is not None and crash.engine_frame is not None

    assert [frame.code.co_name for frame in crash.user_frames][-2:] == ["<module>", "train"]
    assert (crash.raised_at.line, crash.raised_at.site.function) == (7, "train")
    assert crash.engine_frame.code.co_name == "backward"
    assert not crash.engine_frame.user


def test_the_failing_call_and_its_roots(programs: Programs) -> None:
    crash = programs.crash(TWICE.format("torch.autograd.backward([loss, loss * 2])"))
    assert crash.call is not None and crash.raised_at is not None
    loss = crash.raised_at.frame.f_locals["loss"]

    assert crash.call.index == 1
    assert crash.roots()[0] is loss
    assert [node.name() for node in crash.root_nodes()] == ["MulBackward0", "MulBackward0"]
    assert crash.engine_inputs() == []


@pytest.mark.parametrize(
    "call", ["loss.backward(inputs=[weight])", "torch.autograd.grad(loss, weight)"]
)
def test_the_inputs_of_a_call(programs: Programs, call: str) -> None:
    crash = programs.crash(TWICE.format(call))
    (given,) = crash.engine_inputs()

    assert given is crash.user_frames[-1].frame.f_globals["weight"]
    assert [root.shape for root in crash.roots()] == [()]


def test_a_failure_outside_of_the_engine(programs: Programs) -> None:
    crash = programs.crash('raise RuntimeError("data")')

    assert (crash.in_engine, crash.call, crash.engine_frame) == (False, None, None)
    assert (crash.roots(), crash.root_nodes(), crash.engine_inputs()) == ([], [], [])
    assert crash.message == "data"


def test_a_failure_elsewhere_is_not_blamed_on_an_earlier_call(programs: Programs) -> None:
    crash = programs.crash("""
        try:
            torch.ones(2).sum().backward()
        except RuntimeError:
            pass
        raise RuntimeError("later")
    """)

    assert crash.call is None


def test_evidence_is_worked_out_once(programs: Programs) -> None:
    crash, asked = programs.crash("raise RuntimeError"), []

    def find(crash: Crash) -> int:
        asked.append(crash)
        return 3

    assert [crash.once(find), crash.once(find)] == [3, 3]
    assert asked == [crash]


def test_the_exceptions_behind_an_exception() -> None:
    first, second, third = KeyError("a"), ValueError("b"), RuntimeError("c")
    third.__cause__, second.__context__ = second, first

    assert list(chain(third)) == [third, second, first]


def test_a_hidden_or_circular_context_ends_the_chain() -> None:
    hidden, circle = RuntimeError("a"), RuntimeError("b")
    hidden.__context__, hidden.__suppress_context__ = ValueError(), True
    circle.__context__ = ValueError()
    circle.__context__.__context__ = circle

    assert list(chain(hidden)) == [hidden]
    assert list(chain(circle)) == [circle, circle.__context__]
