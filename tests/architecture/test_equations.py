"""Outputs and all gradients are those of the papers' equations, written out as loops."""

import pytest
import torch

from tests.architecture.models import MODELS, batch, model, total
from tests.reference.architectures import TWINS


@pytest.mark.parametrize("name", MODELS)
def test_outputs_and_gradients_agree_with_the_equations(name: str) -> None:
    made, x = model(name), batch()

    torch.manual_seed(7)  # LTB draws
    found = made(x)
    torch.manual_seed(7)
    expected = TWINS[name](made, x)

    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    parameters = list(made.parameters())
    gradients = torch.autograd.grad(total(found), parameters, allow_unused=True)
    twins = torch.autograd.grad(total(expected), parameters, allow_unused=True)
    named = zip(made.named_parameters(), gradients, twins, strict=True)
    for (parameter, _), gradient, twin in named:
        assert gradient is not None and twin is not None, parameter
        torch.testing.assert_close(gradient, twin, rtol=1e-8, atol=1e-9)
    assert sum(bool(gradient.any()) for gradient in gradients) > len(parameters) / 2


def test_every_model_has_a_twin() -> None:
    assert MODELS.keys() == TWINS.keys()
