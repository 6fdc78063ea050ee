"""What is special about PLE, CGC and MMoE."""

import torch
from torch import nn

from gradwright.architecture import CGC, PLE
from gradwright.architecture.extraction import Extraction
from tests.architecture.models import batch, gate, heads, layer, level, model


def levels(made: PLE) -> list[Extraction]:
    return [part for part in made.levels if isinstance(part, Extraction)]


def test_the_shared_gate_of_ple_counts_for_every_task() -> None:
    made, x = model("PLE"), batch()
    assert isinstance(made, PLE)
    before = made(x)
    for part in levels(made)[:-1]:
        assert part.shared_gate is not None
        changed = [p.detach().clone() for p in part.shared_gate.parameters()]
        with torch.no_grad():
            for parameter in part.shared_gate.parameters():
                parameter.add_(torch.randn_like(parameter))
        after = made(x)
        assert not any(torch.allclose(after[task], before[task]) for task in made.tasks)
        with torch.no_grad():
            for parameter, old in zip(part.shared_gate.parameters(), changed, strict=True):
                parameter.copy_(old)


def test_the_last_level_of_ple_has_no_shared_gate() -> None:
    made = model("PLE")
    assert isinstance(made, PLE)

    assert [part.shared_gate is None for part in levels(made)] == [False, False, True]


def test_every_gate_has_one_output_per_expert_that_it_may_use() -> None:
    """Two shared experts, two of each of three tasks."""
    widths: list[int] = []

    def noted(n: int) -> nn.Module:
        widths.append(n)
        return gate(n)

    PLE([level(3, 2)._replace(gate=noted), level(4, 1)], heads())

    assert widths == [4, 4, 4, 2 + 3 * 2]


def test_ple_of_one_level_is_cgc() -> None:
    ple = PLE([level(3, 2)], heads()).double()
    cgc = CGC(layer, 2, 2, gate, heads()).double()
    state = {name.replace("levels.0", "level"): p for name, p in ple.state_dict().items()}

    cgc.load_state_dict(state)

    torch.testing.assert_close(cgc(batch()), ple(batch()), rtol=0, atol=0)
