import pytest

from gradwright.doctor.evidence.shared_graph import Shared, find_shared
from tests.doctor.conftest import Programs

TWO_NETS = """
    first, second = nn.Linear(2, 3), nn.Linear(3, 1)
    one = torch.optim.SGD(first.parameters(), lr=0.1)
    two = torch.optim.SGD(second.parameters(), lr=0.1)
"""
GAN = """
    for step in range(2):
        fake = first(torch.ones(1, 2))
        judged = second(fake).sum()
        judged.backward()
        two.step()
        second(fake).square().sum().backward()
        one.step()
"""
BASELINE = """
    for step in range(2):
        features = torch.ones(1, 3)
        value = second(features)
        gain = (first(torch.ones(1, 2)).sum() - value).square().sum()
        gain.backward()
        loss = value.square().sum()
        loss.backward()
"""
ONE_OPTIMIZER = """
    both = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
    del one, two
    for step in range(2):
        shared = first(torch.ones(1, 2)).exp()
        loss = second(shared).sum()
        loss.backward()
        both.step()
        shared.sum().backward()
"""
TRUNK = """
    for step in range(2):
        shared = first(torch.ones(1, 2)).exp()
        loss = second(shared).sum()
        loss.backward()
        other = nn.Linear(3, 1)(shared).sum()
        other.backward()
"""
HEADER = """
    def losses():
        shared = first(torch.ones(1, 2)).exp()
        return [shared.sum(), second(shared).sum()]

    for loss in losses():
        loss.backward()
"""
INNER_LOOP = """
    for step in range(2):
        shared = first(torch.ones(1, 2)).exp()
        for scale in range(3):
            loss = (shared * scale).sum()
            loss.backward()
"""
GRADIENT = """
    for step in range(2):
        x = torch.ones(1, 2, requires_grad=True)
        energy = first(x).exp().sum()
        (slope,) = torch.autograd.grad(energy, x)
        loss = slope.sum() + energy
        loss.backward()
"""

# shared tensor, whether the first loss was meant to reach it, whether it came from `grad`
DECISIONS = {
    "GAN": (GAN, ("`fake`", True, False)),
    "actor and critic": (BASELINE, ("`value`", True, False)),
    "one optimizer stepped": (ONE_OPTIMIZER, ("`shared`", False, False)),
    "trunk": (TRUNK, ("`shared`", False, False)),
    "loop over losses": (HEADER, ("one forward pass", False, False)),
    "loop that makes losses": (INNER_LOOP, ("`shared`", False, False)),
    "gradient in the loss": (GRADIENT, ("`energy`", False, True)),
}


def shared_in(programs: Programs, text: str) -> Shared | None:
    return find_shared(programs.crash(TWO_NETS + text))


@pytest.mark.parametrize(("text", "expected"), DECISIONS.values(), ids=DECISIONS)
def test_what_is_shared_and_whether_it_was_wanted(
    programs: Programs, text: str, expected: tuple[str, bool, bool]
) -> None:
    shared = shared_in(programs, text)
    assert shared is not None

    assert (shared.said, shared.unwanted, shared.by_grad) == expected


def test_the_line_where_the_first_loss_takes_it(programs: Programs) -> None:
    shared = shared_in(programs, GAN)
    assert shared is not None and shared.first_use is not None and shared.built is not None

    assert (shared.built.line, shared.first_use.line) == (9, 10)


OTHERS = {
    "built once": """
        table = first(torch.ones(1, 2)).exp()
        for step in range(2):
            (table * 2).exp().sum().backward()
    """,
    "state": """
        state = torch.zeros(1, 3)
        for step in range(2):
            state = (first(torch.ones(1, 2)) + state).exp()
            state.sum().backward()
            two.step()
    """,
    "one loss twice": """
        loss = first(torch.ones(1, 2)).exp().sum()
        loss.backward()
        loss.backward()
    """,
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_other_second_backwards_share_nothing(programs: Programs, text: str) -> None:
    lines = TWO_NETS.replace("\n    ", "\n") + "\n".join(
        line.removeprefix("        ") for line in text.splitlines()
    )
    assert find_shared(programs.crash(lines)) is None
