"""Leaves a graph behind at a value, and later sends the gradient back through it."""

from collections.abc import Iterable
from typing import Generic, TypeVar

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, get_gradient_edge

from gradwright.loops.errors import CutError
from gradwright.loops.nested import map_tensors, tensors_of
from gradwright.loops.stages.arrival import Arrival
from gradwright.loops.stages.gradient import Place, entries, fitting

Value = TypeVar("Value")


def cut(value: Value, *, device: torch.device | str | int | None = None) -> "Cut[Value]":
    """End the graph at `value`: compute on with `.value`, later call `.backward()`.

    Both calls together give the gradients of one graph to the last bit: only the order of the work
    changes. `.value` shares the memory of `value`. Sums that are made in another order round
    differently: where several backward passes arrive, or a parameter lies on both sides.

    Args:
        value: A tensor, or tensors in tuples, dicts, dataclasses and the like, nested at will. What
            does not require grad (masks, numbers, None) goes through as it is. A tensor that occurs
            twice stays one tensor.
        device: Where `.value` shall live; by default each tensor stays where it is. The gradient
            comes back by itself.

    Raises:
        CutError: Nothing in `value` requires grad, though gradients are being recorded. Under
            `torch.no_grad()`, in validation, the value goes through.
        NestedError: There is an object of an unknown type inside.

    Example:
        >>> encoder, decoder = torch.nn.Linear(3, 2), torch.nn.Linear(2, 1)
        >>> encoded = cut(encoder(torch.ones(4, 3)))
        >>> decoder(encoded.value).sum().backward()
        >>> encoder.weight.grad is None, encoded.waiting.shape
        (True, torch.Size([4, 2]))
        >>> encoded.backward()
        >>> encoder.weight.grad.shape
        torch.Size([2, 3])
    """
    places: dict[str, Place] = {}
    by_tensor: dict[int, Place] = {}

    def leave(name: str, tensor: Tensor) -> Tensor:
        if not tensor.requires_grad:
            return tensor if device is None else tensor.to(device)
        if id(tensor) not in by_tensor:
            by_tensor[id(tensor)] = _cut_at(tensor, device)
        places[name] = by_tensor[id(tensor)]
        return places[name].leaf

    front = map_tensors(value, leave)
    if not places and torch.is_grad_enabled():
        raise CutError(_no_graph(value))
    return Cut(front, places)


class Cut(Generic[Value]):
    """The two sides of a cut: `value` in front of it, and the graph left behind.

    Attributes:
        value: As what was cut: its numbers, but leaves in the place of the tensors with a graph.
    """

    def __init__(self, value: Value, places: dict[str, Place]) -> None:
        self.value = value
        self._leaves = {name: place.leaf for name, place in places.items()}
        self._arrivals = {name: place.arrival for name, place in places.items()}
        self._places: dict[str, Place] | None = places  # None: the graph behind was freed

    @property
    def waiting(self) -> Value:
        """The gradients that have arrived, nested as `value`; None where there is none.

        They are the `.grad` of the leaves: several backward passes add up, and
        `torch.nn.utils.clip_grad_norm_` or an edit in place changes what will be sent.
        """
        return map_tensors(self.value, lambda name, _: self._arrived().get(name))

    def backward(
        self,
        gradient: object = None,
        *,
        inputs: Tensor | Iterable[Tensor] | None = None,
        retain_graph: bool = False,
    ) -> None:
        """Send the waiting gradients back, as one `torch.autograd.backward` does.

        What waits is cleared and the graph behind is freed.

        Args:
            gradient: Sent in place of what waits. Nested as `value`, each tensor in the shape of
                its place, None for no gradient. A tensor that occurs twice has one gradient.
            inputs: The only tensors whose `.grad` is to change; by default all leaves behind.
            retain_graph: Keep the graph, to send more gradients later. Its numbers stay those of
                the forward pass, however the parameters change.

        Raises:
            CutError: No gradient has arrived, the one given does not fit, the graph was freed by an
                earlier call, or the value was changed in place. No `.grad` has changed then.
        """
        edges, gradients = self._outgoing(gradient)
        chosen = inputs if inputs is None or isinstance(inputs, Tensor) else tuple(inputs)
        torch.autograd.backward(edges, gradients, inputs=chosen, retain_graph=retain_graph)
        self._clear(retain_graph)

    def grad(
        self,
        inputs: Tensor | Iterable[Tensor],
        gradient: object = None,
        *,
        retain_graph: bool = False,
        allow_unused: bool = False,
    ) -> tuple[Tensor | None, ...]:
        """The gradients of `inputs`, as `torch.autograd.grad` gives them: no `.grad` is written.

        What waits is cleared and the graph behind is freed, as by `backward`.

        Args:
            inputs: Tensors that the cut value was computed from.
            gradient: As in `backward`.
            retain_graph: As in `backward`.
            allow_unused: Give None for an input that the value does not depend on, not an error.

        Returns:
            One gradient for each input.

        Raises:
            CutError: As in `backward`.
        """
        edges, gradients = self._outgoing(gradient)
        found: tuple[Tensor | None, ...] = torch.autograd.grad(
            edges,
            inputs if isinstance(inputs, Tensor) else tuple(inputs),
            gradients,
            retain_graph=retain_graph,
            allow_unused=allow_unused,
        )
        self._clear(retain_graph)
        return found

    def _arrived(self) -> dict[str, Tensor]:
        grads = {name: leaf.grad for name, leaf in self._leaves.items()}
        return {name: grad for name, grad in grads.items() if grad is not None}

    def _as_it_came(self) -> dict[str, Tensor]:
        found = self._arrived().items()
        return {name: self._arrivals[name].as_it_came(gradient) for name, gradient in found}

    def _outgoing(self, gradient: object) -> tuple[list[GradientEdge], list[Tensor]]:
        """Where to enter the graph behind, and with what: all checked."""
        if self._places is None:
            raise CutError(_FREED)
        given = self._as_it_came() if gradient is None else fitting(gradient, self._places)
        if not given:
            raise CutError(_NOTHING_ARRIVED)
        return entries(given, self._places)

    def _clear(self, retain_graph: bool) -> None:
        for name, leaf in self._leaves.items():
            leaf.grad = None
            self._arrivals[name].clear()
        if not retain_graph:
            self._places = None


def _cut_at(tensor: Tensor, device: torch.device | str | int | None) -> Place:
    front = tensor.detach() if device is None else tensor.detach().to(device)
    # An optimizer may write into a parameter; and into a copy on another device, everybody.
    watched = front.device == tensor.device and not tensor.is_leaf
    leaf = front.requires_grad_()
    version = leaf._version if watched else None
    return Place(get_gradient_edge(tensor), tensor.device, leaf, version, Arrival(leaf))


def _no_graph(value: object) -> str:
    count = len(tensors_of(value))
    found = f"none of its {count} tensors requires grad" if count else "there is no tensor in it"
    return (
        f"`value` has no graph to cut: {found}. What is frozen, detached or computed under "
        "torch.no_grad() needs no cut; otherwise look where it lost its graph."
    )


_FREED = (
    "the graph behind this cut was freed: its gradient was sent back before. Add the losses up "
    "before one `.backward()`, or keep the graph with `.backward(retain_graph=True)`."
)
_NOTHING_ARRIVED = (
    "no gradient has arrived at the cut: first call `loss.backward()` on a loss computed from the "
    "cut's `.value`, or give a `gradient`."
)
