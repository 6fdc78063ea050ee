"""What only a batch shows is said at the first call, with the shapes."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from gradwright.architecture import (
    AITM,
    CGC,
    ESMM,
    LTB,
    MTAN,
    PLE,
    CrossStitch,
    DSelectK,
    MMoE,
)
from tests.architecture.mistakes import Case, level, stage, wrong
from tests.architecture.models import WIDTH, batch, gate, heads, layer, logit_heads, model


def unequal() -> Callable[[], nn.Module]:
    """Makes modules of 4, 5, 6, … outputs."""
    widths = iter(range(4, 100))
    return lambda: layer(3, next(widths))


def thin() -> nn.Module:
    return layer(WIDTH, 3)


CALLED: dict[str, Case] = {
    "gate-width": (
        lambda: MMoE(layer, 3, lambda n: nn.Linear(3, n + 1), heads()),
        ValueError,
        r"`gates\['age'\]` needs to return \[batch, 3\]: got \[5, 4\]. It read \[5, 3\]",
    ),
    "gate-batch": (
        lambda: MMoE(layer, 3, gate, heads(), gate_input=lambda x: wrong(x)[:2]),
        ValueError,
        "A gate returned weights for 2 examples, but the experts returned 5",
    ),
    "experts": (
        lambda: MMoE(unequal(), 2, gate, heads()),
        ValueError,
        r"`expert` modules give are mixed, so they need one shape: got \[5, 4\], \[5, 5\]",
    ),
    "expert-tuple": (
        lambda: MMoE(lambda: nn.LSTM(3, WIDTH), 2, gate, heads()),
        TypeError,
        "`expert` needs to return a tensor, which is to be mixed: got tuple",
    ),
    "gate-tuple": (
        lambda: MMoE(layer, 2, lambda n: nn.LSTM(3, n), heads()),
        TypeError,
        r"`gates\['age'\]` needs to return a tensor",
    ),
    "cgc-gate": (
        lambda: CGC(layer, 2, 1, lambda n: nn.Linear(3, 2), heads()),
        ValueError,
        r"`gates\['age'\]` needs to return \[batch, 3\]: got \[5, 2\]",
    ),
    "cgc-tasks": (
        lambda: CGC(unequal(), 1, 1, gate, heads()),
        ValueError,
        "`expert` modules give are mixed, so they need one shape: got",
    ),
    "ple-shared-gate": (
        lambda: PLE([level(gate=lambda n: nn.Linear(3, min(n, 2))), level()], heads()),
        ValueError,
        r"`shared_gate` needs to return \[batch, 4\]: got \[5, 2\]",
    ),
    "dselect-gate": (
        lambda: DSelectK(layer, 4, 2, heads(), gate=lambda n: nn.Linear(3, 4)),
        ValueError,
        r"`w\['age'\]` needs to return \[batch, 2\]: got \[5, 4\]",
    ),
    "stitch": (
        lambda: CrossStitch([unequal()], heads()),
        ValueError,
        r"`stages\[0\]` modules give are mixed, so they need one shape: got \[5, 4\], \[5, 5\], ",
    ),
    "stitch-channels": (
        lambda: CrossStitch([layer], heads(), channels=[3]),
        ValueError,
        r"`channels\[0\]` is 3, but the stage gave \[5, 4\]: dimension 1 needs to be the channel",
    ),
    "ltb-nodes": (
        lambda: LTB([unequal()], heads()),
        ValueError,
        r"`stages\[0\]` modules give are mixed",
    ),
    "mtan-mask": (
        lambda: MTAN([stage(second=thin())], heads()),
        ValueError,
        r"`stages\[0\].attention` of 'age' gave a mask \[5, 4\], but `stages\[0\].second` gave "
        r"\[5, 3\]",
    ),
    "mtan-onward": (
        lambda: MTAN([stage(onward=nn.Unflatten(1, (2, 2))), stage(first=thin())], heads()),
        ValueError,
        r"`stages\[0\].onward` gave \[5, 2, 2\], which is to be joined .* gave, \[5, 3\]",
    ),
    "esmm": (
        lambda: ESMM(layer(), heads()),
        ValueError,
        r"`heads` modules give are mixed, so they need one shape: got \[5, 1\], \[5, 2\], \[5, 3\]",
    ),
    "aitm-tower": (
        lambda: AITM(layer(), thin, lambda: layer(WIDTH), WIDTH, logit_heads()),
        ValueError,
        r"`towers\['age'\]` needs to give \[batch, 4\], as `width` says: got \[5, 3\]",
    ),
    "aitm-transfer": (
        lambda: AITM(layer(), lambda: layer(WIDTH), thin, WIDTH, logit_heads()),
        ValueError,
        r"`transfers\['job'\]` needs to give \[batch, 4\], as `width` says: got \[5, 3\]",
    ),
}


@pytest.mark.parametrize("name", CALLED)
def test_at_the_first_call(name: str) -> None:
    make, kind, message = CALLED[name]
    made: Any = make()
    with pytest.raises(kind, match=message):
        made(batch().float())


EACH: dict[str, tuple[Any, type[Exception], str]] = {
    "unknown": ({"sex": 0}, ValueError, "`each` names the task 'sex', but the tasks are 'age', "),
    "empty": ({}, ValueError, "`each` needs the input of at least one task"),
    "tensor": (
        torch.ones(5, 3),
        TypeError,
        "`each` needs a mapping .* got Tensor.* call the model",
    ),
}


@pytest.mark.parametrize("name", EACH)
def test_in_each(name: str) -> None:
    inputs, kind, message = EACH[name]
    with pytest.raises(kind, match=message):
        model("MMoE").each(inputs)


def test_regularization_names_what_is_missing() -> None:
    made, x = model("AITM"), batch()
    assert isinstance(made, AITM)
    with pytest.raises(
        ValueError, match="`outputs` needs the logits of every step: 'job' is missing"
    ):
        made.regularization(made.each({"age": x}))

    dselect = model("DSelectK")
    assert isinstance(dselect, DSelectK)
    with pytest.raises(ValueError, match="`tasks` names the task 'sex', but the tasks are"):
        dselect.regularization(x, ["sex"])
