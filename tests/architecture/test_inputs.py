"""One input for all tasks or one for each; tensors, tuples and dicts."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradwright.architecture import (
    AITM,
    CGC,
    ESMM,
    LTB,
    MTAN,
    PLE,
    Architecture,
    AttentionStage,
    CrossStitch,
    DSelectK,
    ExtractionLevel,
    MMoE,
    SharedBottom,
)
from tests.architecture.models import MODELS, WIDTH, batch, heads, layer, logit_heads, model


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("name", MODELS)
def test_each_agrees_with_one_input(name: str, training: bool) -> None:
    made, x = model(name).train(training), batch()

    torch.manual_seed(7)
    expected = made(x)
    torch.manual_seed(7)
    found = made.each(dict.fromkeys(made.tasks, x))

    assert list(found) == list(expected) == list(made.tasks)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


@pytest.mark.parametrize("name", MODELS)
def test_each_takes_batches_of_different_sizes_in_any_order(name: str) -> None:
    made = model(name).eval()
    inputs = {task: batch(n, seed=n) for n, task in enumerate(reversed(made.tasks[1:]), 2)}

    found = made.each(inputs)

    assert list(found) == list(inputs)
    for task, x in inputs.items():
        torch.testing.assert_close(found[task], made(x)[task])


def test_the_same_input_is_computed_once() -> None:
    made = model("SharedBottom")
    sizes: list[int] = []
    bottom = made.get_submodule("bottom")
    bottom.register_forward_hook(lambda module, args, output: sizes.append(len(args[0])))

    x = batch(5)
    made(x)
    found = made.each({"age": x, "job": batch(3), "type": x})

    assert sizes == [5, 5, 3]
    assert list(found) == ["age", "job", "type"]


class Pair(nn.Module):
    """Reads (x, scale) or {"x": x, "scale": scale}."""

    def __init__(self, n_out: int = WIDTH) -> None:
        super().__init__()
        self.linear = nn.Linear(3, n_out)

    def forward(self, inputs: Any) -> Tensor:
        x, scale = inputs.values() if isinstance(inputs, dict) else inputs
        return torch.tanh(self.linear(x * scale))


def attention() -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Sigmoid())


WITH_PAIRS: dict[str, Callable[[], Architecture]] = {
    "SharedBottom": lambda: SharedBottom(Pair(), heads()),
    "MMoE": lambda: MMoE(Pair, 2, Pair, heads()),
    "DSelectK": lambda: DSelectK(Pair, 3, 2, heads()),
    "DSelectK-gate": lambda: DSelectK(Pair, 3, 2, heads(), gate=Pair),
    "CGC": lambda: CGC(Pair, 1, 1, Pair, heads()),
    "PLE": lambda: PLE([ExtractionLevel(Pair, Pair, 1, 1)], heads()),
    "CrossStitch": lambda: CrossStitch([Pair], heads()),
    "MTAN": lambda: MTAN(
        [AttentionStage(Pair(), nn.Identity(), attention, nn.Identity())], heads()
    ),
    "LTB": lambda: LTB([Pair, lambda: layer(WIDTH)], heads()),
    "ESMM": lambda: ESMM(Pair(), logit_heads()),
    "AITM": lambda: AITM(Pair(), lambda: layer(WIDTH), lambda: layer(WIDTH), WIDTH, logit_heads()),
}


@pytest.mark.parametrize("name", WITH_PAIRS)
def test_tuples_and_dicts_reach_the_modules_as_they_are(name: str) -> None:
    torch.manual_seed(0)
    made, x, scale = WITH_PAIRS[name]().double().eval(), batch(), batch(5, seed=2)

    of_tuple, of_dict = made((x, scale)), made({"x": x, "scale": scale})
    of_product = made((x * scale, torch.ones_like(x)))

    torch.testing.assert_close(of_tuple, of_dict, rtol=0, atol=0)
    torch.testing.assert_close(of_tuple, of_product)
    torch.testing.assert_close(made.each({"age": (x, scale)})["age"], of_tuple["age"])


@pytest.mark.parametrize("name", ["MMoE", "DSelectK-gate", "CGC", "PLE"])
def test_gates_read_what_gate_input_selects(name: str) -> None:
    def gate(n: int) -> nn.Module:
        return nn.Linear(2, n)

    calls: list[object] = []

    def second(inputs: Any) -> object:
        calls.append(inputs)
        return inputs[1]

    level = ExtractionLevel(lambda: First(), gate, 1, 1)
    above = ExtractionLevel(lambda: layer(WIDTH), lambda n: nn.Linear(WIDTH, n), 1, 1)
    made = {
        "MMoE": lambda: MMoE(First, 2, gate, heads(), gate_input=second),
        "DSelectK-gate": lambda: DSelectK(First, 4, 2, heads(), gate=gate, gate_input=second),
        "CGC": lambda: CGC(First, 1, 1, gate, heads(), gate_input=second),
        "PLE": lambda: PLE([level, above], heads(), gate_input=second),
    }[name]().double()
    x, domain = batch(), torch.randn(5, 2, dtype=torch.float64)

    found, changed = made((x, domain)), made((x, -domain))

    assert found["age"].shape == (5, 1)
    assert not torch.allclose(found["age"], changed["age"])
    assert len(calls) == 2  # once for each batch


class First(nn.Module):
    """Reads the first of two inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, WIDTH)

    def forward(self, inputs: tuple[Tensor, Tensor]) -> Tensor:
        return torch.tanh(self.linear(inputs[0]))


def test_features_may_have_more_dimensions() -> None:
    """Images: gates read a mean over the picture, experts and units keep it."""

    def conv(n_in: int) -> nn.Module:
        return nn.Conv2d(n_in, 4, 3, padding=1)

    def decoders() -> dict[str, nn.Module]:
        return {task: nn.Conv2d(4, n, 1) for n, task in enumerate(("depth", "edge"), 1)}

    def mean(inputs: object) -> object:
        assert isinstance(inputs, Tensor)
        return inputs.mean(dim=(2, 3))

    x = torch.randn(2, 3, 5, 6)
    stage = AttentionStage(
        conv(3), nn.Tanh(), lambda: nn.Sequential(nn.Conv2d(4, 4, 1), nn.Sigmoid()), nn.Identity()
    )
    models: list[Architecture] = [
        MMoE(lambda: conv(3), 2, lambda n: nn.Linear(3, n), decoders(), gate_input=mean),
        DSelectK(lambda: conv(3), 2, 1, decoders()),
        CGC(lambda: conv(3), 1, 1, lambda n: nn.Linear(3, n), decoders(), gate_input=mean),
        CrossStitch([lambda: conv(3), lambda: conv(4)], decoders(), channels=[4, 4]),
        MTAN([stage], decoders()),
        LTB([lambda: conv(3), lambda: conv(4)], decoders()),
    ]
    for made in models:
        outputs = made(x)
        assert [list(output.shape) for output in outputs.values()] == [[2, 1, 5, 6], [2, 2, 5, 6]]
