"""BatchNorm in train mode: what a window of several micro-batches cannot make exact."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from torch import Tensor, nn
from torch.autograd.graph import Node
from torch.nn.modules.batchnorm import _BatchNorm

from gradwright.graph import is_accumulator
from gradwright.graph.walk import leaf_of
from gradwright.loops.accumulation.parameters import Trained


class BatchNormWarning(UserWarning):
    """A BatchNorm in train mode normalises each micro-batch by itself."""


def batch_norms(nodes: Iterable[Node], trained: Trained) -> list[str]:
    """The BatchNorms in train mode among the nodes of a graph, by name where there is one.

    InstanceNorm runs the same kernel, with all instances as channels of one batch, and is left
    out: it repeats its weight, its batch is one, and its input was reshaped just before.
    """
    names, model = trained.names(), trained.model
    buffers = {} if model is None else _places_of_buffers(model)
    found: set[str] = set()
    for node in nodes:
        if "CompiledFunction" in node.name() and model is not None:
            found.update(_in_train_mode(model))  # what a compiled part runs cannot be seen
        elif "BatchNorm" in node.name() and _is_training(node):
            name = _name(node, names, buffers)
            if name is not None:
                found.add(repr(name.rpartition(".")[0] or name))
            elif not _is_instance_norm(node):
                found.add(f"one of {_shape(node)[1]} channels")
    return sorted(found)


def batch_norm_message(names: Sequence[str]) -> str:
    """What a `BatchNormWarning` says."""
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return (
        f"{len(names)} BatchNorm in train mode ({shown}): each micro-batch is normalised by "
        "its own mean and variance, so the window is not the same as one large batch. The rest "
        "of it is exact. Call eval() on the BatchNorms to use their running statistics, or "
        "take GroupNorm; SyncBatchNorm joins ranks, not micro-batches, and does not help."
    )


def _is_training(node: Node) -> bool:
    return bool(getattr(node, "_saved_training", True))  # SyncBatchNorm runs in training only


def _is_instance_norm(node: Node) -> bool:
    batch, weight = _shape(node)[0], _weight_node(node)
    if weight is not None:
        return not is_accumulator(weight) and "Repeat" in weight.name()
    source = node.next_functions[0][0] if node.next_functions else None
    return batch == 1 and (source is None or _is_reshape(source))


def _is_reshape(node: Node) -> bool:
    return any(word in node.name() for word in ("View", "Reshape"))


def _shape(node: Node) -> Sequence[int]:
    metadata: Any = node._input_metadata
    return tuple(metadata[0].shape)


def _weight_node(node: Node) -> Node | None:
    inputs = node.next_functions
    return inputs[1][0] if len(inputs) > 1 else None


def _name(node: Node, names: dict[int, str], buffers: dict[int, str]) -> str | None:
    """The name of its weight or its running mean."""
    weight = _weight_node(node)
    if weight is not None and is_accumulator(weight):
        known = names.get(id(leaf_of(weight)))
        if known is not None:
            return known
    saved = getattr(node, "_raw_saved_running_mean", None)
    mean = getattr(saved, "data", None)  # as it was packed: no hook of others runs
    return buffers.get(mean.data_ptr()) if isinstance(mean, Tensor) else None


def _places_of_buffers(model: nn.Module) -> dict[int, str]:
    return {buffer.data_ptr(): name for name, buffer in model.named_buffers() if buffer.numel()}


def _in_train_mode(model: nn.Module) -> Iterator[str]:
    for name, module in model.named_modules():
        if isinstance(module, _BatchNorm) and module.training:
            yield repr(name)
