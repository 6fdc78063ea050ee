"""What a window finds around it: parameters, wrappers, ranks, and what the first graph says."""

import warnings
from collections.abc import Iterable, Iterator, Sequence

import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd.graph import Node

from gradwright.graph import is_accumulator, reachable
from gradwright.graph.walk import leaf_of
from gradwright.loops.accumulation.batch_norm import (
    BatchNormWarning,
    batch_norm_message,
    batch_norms,
)
from gradwright.loops.accumulation.distributed.deferral import Deferral
from gradwright.loops.accumulation.distributed.ranks import Ranks, ranks_of
from gradwright.loops.accumulation.distributed.wrapped import (
    sharded_parameters,
    sharded_parts,
    wrappers_of,
)
from gradwright.loops.accumulation.parameters import Model, Trained, read_model, trained_by
from gradwright.loops.errors import WindowError

_LEVEL = 4  # of the stack, from here to who called Window.backward


class StrangerWarning(UserWarning):
    """A loss trains parameters that its window was not given."""


class Surroundings:
    """Looked up when a window is first used: a model may be wrapped after the window was made."""

    def __init__(self, model: Model) -> None:
        self._model = read_model(model)
        self._batch_norms: list[str] | None = None
        self._joined: tuple[list[nn.Module], Deferral, Ranks | None] | None = None
        self._world: object = None  # the processes that were joined then

    def __getstate__(self) -> dict[str, object]:
        """For copies of a module that has its window as an attribute: processes are not copied."""
        return self.__dict__ | {"_joined": None, "_world": None}

    @property
    def deferral(self) -> Deferral:
        """How to defer the exchange of gradients."""
        return self._found[1]

    @property
    def ranks(self) -> Ranks | None:
        """Those whose gradients are averaged with ours."""
        return self._found[2]

    def trained(self) -> Trained:
        """The parameters as they are now; those of FSDP2 as this rank keeps them."""
        trained = trained_by(self._model)
        pairs = (pair for wrapper in self._wrappers for pair in sharded_parameters(wrapper))
        kept = {id(gathered): own for gathered, own in pairs if gathered is not None}
        if not kept:
            return trained
        tensors = [kept.get(id(tensor), tensor) for tensor in trained.tensors]
        return Trained(tensors, trained.model)

    def look_at(self, losses: Sequence[Tensor]) -> None:
        """Walk the graph of the first losses, once; warn of parameters that are not the window's.

        FSDP2's graph has the gathered parameters, whose names nobody knows.
        """
        if self._batch_norms is not None:
            return
        trained = trained_by(self._model)
        nodes = reachable(loss.grad_fn for loss in losses if loss.grad_fn is not None)
        self._batch_norms = batch_norms(nodes, trained)
        strangers = list(_strangers(nodes, trained))
        sharded = any(sharded_parts(wrapper) for wrapper in self._wrappers)
        if strangers and not sharded:
            warnings.warn(_stranger_message(strangers), StrangerWarning, stacklevel=_LEVEL)

    def warn_of_batch_norms(self) -> None:
        """Say once which BatchNorms make the second micro-batch of a window inexact."""
        if self._batch_norms:
            message = batch_norm_message(self._batch_norms)
            self._batch_norms = []
            warnings.warn(message, BatchNormWarning, stacklevel=_LEVEL)

    def refuse_ranks(self) -> None:
        """Refuse what runs in one process only.

        Raises:
            WindowError: the model is in DDP or FSDP.
        """
        if self._wrappers:
            raise WindowError(
                "several losses in one window are not averaged over ranks: each rank would find "
                "weights of its own. Give one loss, or train in one process."
            )

    @property
    def _wrappers(self) -> list[nn.Module]:
        return self._found[0]

    @property
    def _found(self) -> tuple[list[nn.Module], Deferral, Ranks | None]:
        """Looked for when processes have been joined, and again when others have."""
        if not (dist.is_available() and dist.is_initialized()):
            return _ALONE
        world = dist.group.WORLD
        if self._joined is None or self._world is not world:
            parameters = trained_by(self._model).tensors
            wrappers = wrappers_of(self._model, parameters)
            self._joined = wrappers, Deferral(wrappers), ranks_of(wrappers, parameters)
            self._world = world
        return self._joined


_ALONE: tuple[list[nn.Module], Deferral, Ranks | None] = ([], Deferral([]), None)


def _strangers(nodes: Iterable[Node], trained: Trained) -> Iterator[Tensor]:
    ours = {id(parameter) for parameter in trained.tensors}
    for node in nodes:
        if is_accumulator(node):
            leaf = leaf_of(node)
            if isinstance(leaf, nn.Parameter) and id(leaf) not in ours:
                yield leaf


def _stranger_message(strangers: Sequence[Tensor]) -> str:
    shapes = ", ".join(str(list(stranger.shape)) for stranger in strangers[:3])
    more = ", …" if len(strangers) > 3 else ""
    return (
        f"the loss also trains {len(strangers)} parameters that the window was not given (of shape "
        f"{shapes}{more}): their gradients stay undivided. Give the window all that the optimizer "
        "steps, or freeze the others with requires_grad_(False)."
    )
