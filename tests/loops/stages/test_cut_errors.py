"""What a cut refuses: with the place in the value, and before any `.grad` has changed."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradwright.loops.errors import CutError, NestedError
from gradwright.loops.stages import Cut, cut


@pytest.fixture
def encoder() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(3, 2)


def nested(encoder: nn.Linear) -> dict[str, Any]:
    hidden = encoder(torch.ones(4, 3))
    return {"hidden": [hidden, hidden.tanh()], "mask": torch.ones(4), "n": 4}


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (torch.ones(2), "none of its 1 tensors requires grad"),
        ({"a": [torch.ones(2), torch.ones(2)]}, "none of its 2 tensors requires grad"),
        ((None, 3), "no tensor in it"),
        (nn.Linear(2, 2)(torch.ones(1, 2)).detach(), "lost its graph"),
    ],
    ids=["tensor", "nested", "empty", "detached"],
)
def test_nothing_to_cut(value: object, found: str) -> None:
    with pytest.raises(CutError, match=found):
        cut(value)


def test_unknown_type_has_its_path(encoder: nn.Linear) -> None:
    with pytest.raises(NestedError, match=r"value\['state'\]"):
        cut({"hidden": encoder(torch.ones(1, 3)), "state": object()})


def test_no_gradient_arrived(encoder: nn.Linear) -> None:
    encoded = cut(nested(encoder))

    with pytest.raises(CutError, match=r"no gradient has arrived at the cut: first call `loss\."):
        encoded.backward()
    with pytest.raises(CutError, match="no gradient has arrived"):
        encoded.grad(encoder.parameters())
    with pytest.raises(CutError, match="no gradient has arrived"):
        encoded.backward({"hidden": [None, None], "mask": None, "n": None})


def hidden(*parts: object, mask: object = None) -> dict[str, object]:
    return {"hidden": list(parts), "mask": mask, "n": None}


GRADIENTS = {
    "another shape": (
        hidden(None, torch.ones(2)),
        r"gradient of `value\['hidden'\]\[1\]` has shape \[2\], what was cut there has \[4, 2\]",
    ),
    "one too few": (hidden(torch.ones(4, 2)), r"None at `value\['hidden'\]\[1\]`. It has nothing"),
    "a number": (hidden(1.0, None), r"None at `value\['hidden'\]\[0\]`. It has float there"),
    "a tensor": (torch.ones(4, 2), r"It has nothing there; its parts are `value`\."),
    "one too many": (
        hidden(None, torch.ones(4, 2), torch.ones(4, 2)),
        r"a tensor at `value\['hidden'\]\[2\]`, where no graph was cut",
    ),
    "for a mask": (
        hidden(None, torch.ones(4, 2), mask=torch.ones(4)),
        r"at `value\['mask'\]`, where no graph was cut: give None there. Gradients go back at "
        r"`value\['hidden'\]\[0\]`, `value\['hidden'\]\[1\]`",
    ),
}


@pytest.mark.parametrize("case", GRADIENTS)
def test_gradients_that_do_not_fit(case: str, encoder: nn.Linear) -> None:
    gradient, message = GRADIENTS[case]
    encoded = cut(nested(encoder))
    encoded.value["hidden"][0].sum().backward()

    with pytest.raises(CutError, match=message):
        encoded.backward(gradient)

    assert encoder.weight.grad is None
    assert encoded.waiting["hidden"][0] is not None  # nothing is lost


def test_two_gradients_for_one_tensor(encoder: nn.Linear) -> None:
    output = encoder(torch.ones(4, 3))
    encoded = cut((output, output))

    with pytest.raises(CutError, match=r"`value\[0\]` and `value\[1\]` are one tensor"):
        encoded.backward((torch.ones(4, 2), torch.zeros(4, 2)))

    assert encoder.weight.grad is None


def by_backward(encoded: Cut, encoder: nn.Linear) -> None:
    encoded.backward()


def by_grad(encoded: Cut, encoder: nn.Linear) -> None:
    encoded.grad(encoder.parameters())


@pytest.mark.parametrize("first", [by_backward, by_grad])
@pytest.mark.parametrize("second", [by_backward, by_grad])
def test_sent_twice(first: Callable, second: Callable, encoder: nn.Linear) -> None:
    encoded = cut(encoder(torch.ones(4, 3)))
    encoded.value.sum().backward()
    first(encoded, encoder)
    before = copied(encoder)
    encoded.value.sum().backward()

    with pytest.raises(CutError, match=r"was freed: .* `\.backward\(retain_graph=True\)`"):
        second(encoded, encoder)

    assert all(map(same, copied(encoder), before))


@pytest.mark.parametrize("through", ["what was cut", "value"])
def test_changed_in_place(through: str, encoder: nn.Linear) -> None:
    output = encoder(torch.ones(4, 3)).tanh()
    encoded = cut({"hidden": output})
    encoded.value["hidden"].sum().backward()
    with torch.no_grad():
        (output if through == "what was cut" else encoded.value["hidden"]).mul_(2)

    with pytest.raises(CutError, match=r"`value\['hidden'\]` was changed in place after the cut"):
        encoded.backward()

    assert encoder.weight.grad is None


def test_changed_in_place_while_recording(encoder: nn.Linear) -> None:
    encoded = cut(encoder(torch.ones(4, 3)))

    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        encoded.value.relu_()


def test_no_numbers_on_the_meta_device(encoder: nn.Linear) -> None:
    encoded = cut((encoder(torch.ones(4, 3)),), device="meta")
    encoded.value[0].sum().backward()

    with pytest.raises(CutError, match=r"`value\[0\]` lies on the meta device and has no numbers"):
        encoded.backward()

    assert encoder.weight.grad is None


def copied(encoder: nn.Linear) -> list[Tensor | None]:
    found = [parameter.grad for parameter in encoder.parameters()]
    return [None if gradient is None else gradient.clone() for gradient in found]


def same(one: Tensor | None, other: Tensor | None) -> bool:
    return one is other or (one is not None and other is not None and torch.equal(one, other))
