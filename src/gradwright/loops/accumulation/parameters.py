"""The parameters that a window watches."""

from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor, nn

from gradwright.graph import names_of_tensors
from gradwright.loops.errors import WindowError

Model = nn.Module | Iterable[Tensor]
"""A module, or parameters."""


@dataclass(frozen=True, slots=True)
class Trained:
    """The parameters of a window, each once."""

    tensors: list[Tensor]
    names: dict[int, str]  # by id, where a module was given
    rewritten: frozenset[int]  # ids of those that their own forward writes into

    def name(self, tensor: Tensor) -> str:
        """What messages call a parameter."""
        return repr(self.names.get(id(tensor), f"one of shape {list(tensor.shape)}"))


def trained_by(model: nn.Module | list[Tensor]) -> Trained:
    """The parameters of a module, frozen ones too, or those that were given.

    Raises:
        WindowError: there is none.
    """
    if isinstance(model, nn.Module):
        names = names_of_tensors([("", model)])
        found = Trained(list(model.parameters()), names, frozenset(_renormed(model)))
    else:
        found = Trained(list({id(tensor): tensor for tensor in model}.values()), {}, frozenset())
    if not found.tensors:
        raise WindowError("`model` has no parameters: give the module whose loss is accumulated.")
    return found


def read_model(model: Model) -> nn.Module | list[Tensor]:
    """The module itself, or a list of the parameters.

    Raises:
        WindowError: it is something else.
    """
    if isinstance(model, nn.Module):
        return model
    if isinstance(model, Tensor) or not isinstance(model, Iterable):
        raise WindowError(
            f"`model` is a {type(model).__name__}: it must be a module, or a list of parameters."
        )
    tensors = list(model)
    for tensor in tensors:
        if not isinstance(tensor, Tensor) or not tensor.is_leaf:
            kind = "computed tensor" if isinstance(tensor, Tensor) else type(tensor).__name__
            raise WindowError(
                f"`model` has a {kind} among its parameters: it must be a module, or a list of "
                "parameters (leaves). Of several modules: [*a.parameters(), *b.parameters()]."
            )
    return tensors


def _renormed(model: nn.Module) -> Iterable[int]:
    """Embeddings with `max_norm` write into their weight in every forward."""
    for module in model.modules():
        if isinstance(module, nn.Embedding | nn.EmbeddingBag) and module.max_norm is not None:
            yield id(module.weight)
