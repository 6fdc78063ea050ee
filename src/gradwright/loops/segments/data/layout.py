"""Where time lies in a nested batch, and the part of it between two times."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from gradwright.loops.errors import SegmentError
from gradwright.loops.nested import map_tensors
from gradwright.loops.segments.compact import compact

Data = TypeVar("Data")

Dims = int | tuple["Dims", ...] | list["Dims"] | Mapping[str, "Dims"] | None
"""The dimension of time: of all tensors, or nested as the batch is (as `in_dims` of
`torch.vmap`). None for what has no time and goes whole into every segment."""

_LEAVES = (Tensor, PackedSequence)


@dataclass(frozen=True)
class Layout:
    """How long a batch is, and along which dimension of each of its tensors."""

    dims: dict[str, int | None]  # by the tensor's name; None for what has no time
    length: int
    batch_sizes: Tensor | None  # rows still running at each time [time]; of packed batches

    def cut(self, batch: Data, start: int, length: int) -> Data:
        """What happens in `start`, …, `start + length - 1`; a copy where a view would pin more."""

        def piece(name: str, leaf: Tensor | PackedSequence) -> Tensor | PackedSequence:
            if isinstance(leaf, PackedSequence):
                return _packed_piece(leaf, start, length)
            dim = self.dims[name]
            return leaf if dim is None else compact(leaf.narrow(dim, start, length))

        return map_tensors(batch, piece, "batch", _LEAVES)

    def rows(self, *times: int) -> tuple[int, ...] | None:
        """Rows of a packed batch that are running at these times."""
        if self.batch_sizes is None:
            return None
        return tuple(int(self.batch_sizes[time]) for time in times)

    def tokens(self, start: int, length: int) -> int:
        """Times from `start` on; of a packed batch, its elements."""
        if self.batch_sizes is None:
            return length
        return int(self.batch_sizes[start : start + length].sum())


def layout_of(batch: object, dims: Dims) -> Layout:
    """Reads the dimension and the length of time off every tensor of `batch`.

    Raises:
        SegmentError: A tensor has no such dimension, the lengths differ, or nothing has a time.
    """
    found: dict[str, int | None] = {}
    lengths: dict[str, int] = {}
    packed: list[PackedSequence] = []

    def note(name: str, leaf: Tensor | PackedSequence) -> Tensor | PackedSequence:
        if isinstance(leaf, PackedSequence):
            packed.append(leaf)
            lengths[name] = len(leaf.batch_sizes)
            return leaf
        dim = found[name] = _dim_of(name, leaf, _at(dims, name))
        if dim is not None:
            lengths[name] = leaf.shape[dim]
        return leaf

    map_tensors(batch, note, "batch", _LEAVES)
    length = _one_length(lengths, found)
    return Layout(found, length, _one_packing(packed))


def _at(dims: Dims, name: str) -> int | None:
    """The dimension said for the tensor of this name; follows it as far as `dims` is nested."""
    rest = name.removeprefix("batch")
    while not (dims is None or isinstance(dims, int)):
        dims, rest = _step(dims, rest, name)
    return dims


def _step(
    dims: tuple[Dims, ...] | list[Dims] | Mapping[str, Dims], rest: str, name: str
) -> tuple[Dims, str]:
    keys = dims if isinstance(dims, Mapping) else getattr(dims, "_fields", range(len(dims)))
    inner = dims.values() if isinstance(dims, Mapping) else dims
    for key, dim in zip(keys, inner, strict=True):
        for part in (f"[{key!r}]", f".{key}"):
            if rest == part or rest.startswith((part + "[", part + ".")):
                return dim, rest[len(part) :]
    raise SegmentError(
        f"`dim` says nothing of `{name}`: give a dimension, or None if it has no time."
    )


def _dim_of(name: str, tensor: Tensor, dim: int | None) -> int | None:
    if dim is None:
        return None
    if not -tensor.dim() <= dim < tensor.dim():
        raise SegmentError(
            f"`{name}` has shape {list(tensor.shape)}, so it has no dimension {dim} to be cut "
            "along: give `dim` nested as the batch is, with None for what has no time."
        )
    return dim % tensor.dim()


def _one_length(lengths: dict[str, int], dims: dict[str, int | None]) -> int:
    if not lengths:
        raise SegmentError("`batch` has no tensor with a time: there is nothing to cut.")
    if len(set(lengths.values())) > 1:
        each = ", ".join(
            f"`{name}` has {length}" + (f" (dim {dims[name]})" if name in dims else "")
            for name, length in lengths.items()
        )
        raise SegmentError(
            f"`batch` must have one length along time: {each}. Give `dim` nested as the batch "
            "is, with None for what has no time."
        )
    length = next(iter(lengths.values()))
    if length == 0:
        raise SegmentError("`batch` has length 0 along time: there is nothing to cut.")
    return length


def _one_packing(packed: list[PackedSequence]) -> Tensor | None:
    if not packed:
        return None
    first = packed[0]
    for other in packed[1:]:
        if not torch.equal(first.batch_sizes, other.batch_sizes):
            raise SegmentError(
                "the packed sequences of `batch` have different lengths: "
                f"{first.batch_sizes.tolist()} and {other.batch_sizes.tolist()} rows at each time."
            )
    return first.batch_sizes


def _packed_piece(packed: PackedSequence, start: int, length: int) -> PackedSequence:
    """Rows stay sorted, longest first, so no indices: the state's rows are in that order too."""
    ends = list(accumulate(packed.batch_sizes.tolist(), initial=0))
    data = packed.data[ends[start] : ends[start + length]]
    return PackedSequence(compact(data), packed.batch_sizes[start : start + length])
