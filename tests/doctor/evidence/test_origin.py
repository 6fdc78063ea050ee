import pytest

from gradwright.doctor.evidence.origin import Origin, value_of
from gradwright.doctor.evidence.second_backward import second_backward
from tests.doctor.conftest import Programs

ORIGINS = {
    "local": (
        """
        def main():
            net = nn.Linear(2, 2)
            kept = net(torch.ones(1, 2)).exp()
            for _ in range(2):
                (kept * 2).exp().sum().backward()

        main()
        """,
        ("`kept`", 6, 8),
    ),
    "attribute": (
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(2))
                self.soft = self.scale.exp()

            def forward(self, x):
                return x * self.soft.log()

        model = Model()
        for _ in range(2):
            model(torch.ones(2)).sum().backward()
        """,
        ("`model.soft`", 8, 11),
    ),
    "state that was replaced since": (
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.cell, self.state = nn.RNNCell(2, 2), None

            def forward(self, x):
                self.state = self.cell(x, self.state)
                return self.state.exp()

        model = Model()
        for _ in range(2):
            model(torch.ones(1, 2)).sum().backward()
        """,
        ("`self.state`", 10, 10),
    ),
    "item of a dict": (
        """
        cell, memory = nn.RNNCell(2, 2), {"h": None}

        def forward(x):
            memory["h"] = cell(x, memory["h"])
            return memory["h"].exp()

        for _ in range(2):
            forward(torch.ones(1, 2)).sum().backward()
        """,
        ("`memory['h']`", 7, 7),
    ),
    "global that a function assigns": (
        """
        weight, state = torch.ones(2, requires_grad=True), torch.zeros(2)

        def forward():
            global state
            state = (state.view(2) + weight).exp()
            return state

        for _ in range(2):
            forward().sum().backward()
        """,
        ("`state`", 8, 8),
    ),
    "kept by a cache": (
        """
        from functools import cache
        weight = torch.ones(2, requires_grad=True)

        @cache
        def kernel(power):
            return (weight * power).exp()

        for _ in range(2):
            (kernel(2) * 3).exp().sum().backward()
        """,
        ("the result of `kernel`", 9, 12),
    ),
}


@pytest.mark.parametrize(("text", "expected"), ORIGINS.values(), ids=ORIGINS)
def test_name_and_lines(programs: Programs, text: str, expected: tuple[str, int, int]) -> None:
    origin = origin_of(programs, text)
    assert origin.built is not None and origin.reused is not None

    assert (origin.said, origin.built.line, origin.reused.line) == expected


@pytest.mark.parametrize(
    ("line", "direct"),
    [("kept = weight.exp()", True), ("kept, other = weight.exp(), 1", False)],
)
def test_direct_is_a_plain_assignment(programs: Programs, line: str, direct: bool) -> None:
    text = f"""
        weight = torch.ones(2, requires_grad=True)
        {line}
        for _ in range(2):
            (kept * 2).exp().sum().backward()
    """

    assert origin_of(programs, text).direct == direct


def test_value_of_a_dotted_name(programs: Programs) -> None:
    crash = programs.crash("""
        net = nn.ModuleDict({"body": nn.Linear(2, 2)})
        raise RuntimeError
    """)
    file = crash.user_frames[-1].file

    assert value_of("net.body", crash, file) is value_of("net", crash, file)["body"]  # type: ignore[index]
    assert value_of("net.missing", crash, file) is None
    assert value_of("net", crash, "elsewhere.py") is None


def test_without_name_and_source_it_is_an_earlier_result() -> None:
    assert Origin("", None, None, None, ()).said == "an earlier result"


def origin_of(programs: Programs, text: str) -> Origin:
    facts = second_backward(programs.crash(text))
    assert facts is not None
    return facts[1]
