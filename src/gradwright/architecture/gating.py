"""What gates read."""

from collections.abc import Callable

from torch import nn

GateInput = Callable[[object], object]
"""From a model's input to what its gates read; a module is trained with the model."""


def the_input_itself(inputs: object) -> object:
    """The default: gates read what experts read."""
    return inputs


def check_gate_input(gate_input: object) -> None:
    """Raises `TypeError` if it cannot be called."""
    if not callable(gate_input):
        raise TypeError(
            "`gate_input` needs a callable from the input to what gates read: got "
            f'{gate_input!r}. Write `gate_input=lambda inputs: inputs["domain"]`, say.'
        )


def modules_of(gate_input: GateInput) -> list[nn.Module]:
    """The callable itself if it is a module, for the path of every task."""
    return [gate_input] if isinstance(gate_input, nn.Module) else []
