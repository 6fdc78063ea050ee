"""The gradient that goes back through a cut: what it has to look like, where it enters."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge

from gradwright.loops.errors import CutError
from gradwright.loops.nested import outline, tensors_of
from gradwright.loops.stages.arrival import Arrival


class Place(NamedTuple):
    """Where one tensor was cut: the graph left behind, and the leaf in front."""

    edge: GradientEdge  # not the tensor: writing into it later moves the tensor, not the edge
    device: torch.device  # of the graph left behind
    leaf: Tensor
    version: int | None  # of the leaf's memory; None where writing into it does no harm
    arrival: Arrival


def fitting(gradient: object, places: Mapping[str, Place]) -> dict[str, Tensor]:
    """The tensors of a gradient that the user gives, by their names in the value that was cut.

    Raises:
        CutError: It is nested otherwise, has another shape somewhere, or a tensor too many.
    """
    given, words = tensors_of(gradient), outline(gradient)
    for name, place in places.items():
        if words.get(name) not in ("Tensor", "NoneType"):
            raise CutError(_nested_otherwise(name, words))
        if name in given and given[name].shape != place.leaf.shape:
            raise CutError(
                f"the gradient of `{name}` has shape {list(given[name].shape)}, what was cut there "
                f"has {list(place.leaf.shape)}: give it in that shape, or None."
            )
    for name in given:
        if name not in places:
            raise CutError(
                f"`gradient` has a tensor at `{name}`, where no graph was cut: give None there. "
                f"Gradients go back at {_listed(places)}."
            )
    return given


def entries(
    given: Mapping[str, Tensor], places: Mapping[str, Place]
) -> tuple[list[GradientEdge], list[Tensor]]:
    """One edge and one gradient for each tensor, however often it occurs in the value.

    Args:
        given: Gradients by their names in the value.
        places: Where it was cut, by the same names.

    Raises:
        CutError: What was cut has been changed since, or the gradient cannot be used.
    """
    chosen: dict[int, str] = {}
    for name, gradient in given.items():
        _check_unchanged(name, places[name])
        first = chosen.setdefault(id(places[name]), name)
        if gradient is not given[first] and not torch.equal(gradient, given[first]):
            raise CutError(
                f"`{first}` and `{name}` are one tensor, but `gradient` has two different tensors "
                "for it: give their sum at one of the two, None at the other."
            )
    return (
        [places[name].edge for name in chosen.values()],
        [_moved(name, given[name], places[name].device) for name in chosen.values()],
    )


def _nested_otherwise(name: str, words: Mapping[str, str]) -> str:
    return (
        "`gradient` has to be nested as the value that was cut, with a tensor or None at "
        f"`{name}`. It has {words.get(name, 'nothing')} there; its parts are {_listed(words)}."
    )


def _check_unchanged(name: str, place: Place) -> None:
    if place.version not in (None, place.leaf._version):
        raise CutError(
            f"`{name}` was changed in place after the cut, and shares its memory with what was cut:"
            " the gradient would not be that of the graph behind. Change a clone, or cut later."
        )


def _moved(name: str, gradient: Tensor, device: torch.device) -> Tensor:
    """The gradient on the device of the graph behind."""
    if gradient.is_meta and device.type != "meta":
        raise CutError(
            f"the gradient of `{name}` lies on the meta device and has no numbers to send to "
            f"{device}: cut with a device that computes."
        )
    return gradient.to(device)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
