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
    model: nn.Module | None  # where one was given

    def names(self) -> dict[int, str]:
        """The names of the parameters by id, where a module was given."""
        return {} if self.model is None else names_of_tensors([("", self.model)])

    def rewritten(self) -> set[int]:
        """The ids of those that their own forward writes into: `nn.Embedding(max_norm=...)`."""
        modules = [] if self.model is None else self.model.modules()
        return {
            id(module.weight)
            for module in modules
            if isinstance(module, nn.Embedding | nn.EmbeddingBag) and module.max_norm is not None
        }


def trained_by(model: nn.Module | list[Tensor]) -> Trained:
    """The parameters of a module, frozen ones too, or those that were given.

    Raises:
        WindowError: there is none.
    """
    found: list[Tensor] = [*model.parameters()] if isinstance(model, nn.Module) else model
    if not found:
        raise WindowError("`model` has no parameters: give the module whose loss is accumulated.")
    return Trained(found, model if isinstance(model, nn.Module) else None)


def read_model(model: Model) -> nn.Module | list[Tensor]:
    """The module itself, or a list of the parameters, each once.

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
    return list({id(tensor): tensor for tensor in tensors}.values())
