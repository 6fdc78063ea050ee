"""The layers of a model: the modules that own parameters, or groups that the user names."""

from collections.abc import Iterable, Mapping

from torch import Tensor, nn

Layers = dict[str, tuple[Tensor, ...]]

OWNED_BY_THE_MODEL = "(model)"  # parameters that are in no module below


def layers_of(model: nn.Module | Mapping[str, Iterable[Tensor]]) -> Layers:
    """The parameters of each layer, by name.

    Parameters that several modules share belong to the first. Groups may overlap.

    Raises:
        TypeError: `model` is neither a module nor a mapping from names to parameters.
        ValueError: A group is empty or holds what is no parameter, or nothing can be trained.
    """
    if isinstance(model, nn.Module):
        layers = _of_modules(model)
    elif isinstance(model, Mapping):
        layers = {name: _checked_group(name, group) for name, group in model.items()}
    else:
        raise TypeError(
            f"`model` is a {type(model).__name__}: give a module, or groups of parameters by name, "
            'such as {"trunk": trunk.parameters()}.'
        )
    if not any(one.requires_grad for parameters in layers.values() for one in parameters):
        raise ValueError(
            "`model` has no parameter that requires a gradient, so there is nothing to watch: "
            "give the module that is trained, or groups of its parameters."
        )
    return layers


def _of_modules(model: nn.Module) -> Layers:
    layers: Layers = {}
    seen: set[int] = set()
    for name, module in model.named_modules():
        own = [one for one in module.parameters(recurse=False) if id(one) not in seen]
        seen |= {id(one) for one in own}
        if own:
            layers[name or OWNED_BY_THE_MODEL] = tuple(own)
    return layers


def _checked_group(name: object, group: Iterable[Tensor]) -> tuple[Tensor, ...]:
    if not isinstance(name, str):
        raise TypeError(f"`model` has a group named {name!r}: the name must be a string.")
    if isinstance(group, Tensor):
        raise TypeError(f"group {name!r} is one tensor: give a list of parameters.")
    parameters = tuple(group)
    if not parameters:
        raise ValueError(
            f"group {name!r} is empty: give its parameters. `module.parameters()` can be read "
            "only once; make a list of it to use it twice."
        )
    for position, one in enumerate(parameters):
        if not isinstance(one, Tensor) or not one.is_leaf:
            found = "a computed tensor" if isinstance(one, Tensor) else f"a {type(one).__name__}"
            raise ValueError(
                f"group {name!r} has {found} at position {position}: give parameters, which stay "
                "the same from batch to batch."
            )
    return parameters
