"""Jacobians given as one tensor [task, *shape] per shared parameter."""

import itertools
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from gradwright.weighting.values import wide


def inner_products(left: Sequence[Tensor], right: Sequence[Tensor]) -> Tensor:
    """Sum over the parameters of left @ rightᵀ: [task, task] in float64."""
    # float64: squares of float32 gradients below 1e-23 underflow to 0
    return torch.stack(
        [wide(a.flatten(1)) @ wide(b.flatten(1)).T for a, b in zip(left, right, strict=True)]
    ).sum(0)


def norms(rows: Tensor) -> Tensor:
    """Euclidean norm of each task's part of one parameter: [task] in float64."""
    lengths: Tensor = torch.linalg.vector_norm(wide(rows.flatten(1)), dim=1)
    return lengths


def row_norms(jacobian: Sequence[Tensor]) -> Tensor:
    """Euclidean norm of each task's whole gradient: [task] in float64."""
    parts = torch.stack([norms(rows) for rows in jacobian])
    lengths: Tensor = torch.linalg.vector_norm(parts, dim=0)
    return lengths


def scaled(rows: Tensor, factors: Tensor) -> Tensor:
    """Each task's part of one parameter times its factor [task], in float32 or wider."""
    return rows * factors.to(rows.device, _sum_type(rows)).reshape(-1, *[1] * (rows.dim() - 1))


def combined(jacobian: Sequence[Tensor], weights: Tensor) -> list[Tensor]:
    """Weighted sum over the tasks: one tensor [*shape] per parameter, in float32 or wider."""
    return [
        torch.tensordot(weights.to(rows.device, _sum_type(rows)), rows.to(_sum_type(rows)), dims=1)
        for rows in jacobian
    ]


def as_given(update: Sequence[Tensor], jacobian: Sequence[Tensor]) -> list[Tensor]:
    """The update in the precision of the Jacobian."""
    return [part.to(rows.dtype) for part, rows in zip(update, jacobian, strict=True)]


def _sum_type(rows: Tensor) -> torch.dtype:
    # Running sums of bfloat16 gradients would lose small ones, and float16 overflows at 65,504
    return torch.promote_types(rows.dtype, torch.float32)


class RowMemory(nn.Module):
    """One buffer [task, *shape] per shared parameter, all zeros when the first Jacobian comes.

    The shapes are not known when a method is made, so the buffers appear later. A saved state
    brings its own: loading makes the buffers that are in it and drops the others.
    """

    def __init__(self, n_tasks: int) -> None:
        super().__init__()
        self.n_tasks = n_tasks

    def like(self, jacobian: Sequence[Tensor]) -> list[Tensor]:
        """The buffers, one per tensor of `jacobian`, made now if this is the first."""
        if not self._buffers:
            for position, rows in enumerate(jacobian):
                self.register_buffer(str(position), self._zeros(rows))
        shapes = [buffer.shape[1:] for buffer in self.buffers()]
        if shapes != [rows.shape[1:] for rows in jacobian]:
            raise ValueError(
                f"this weighting remembers gradients of {len(shapes)} shared parameters of shapes "
                f"{_written(shapes)}, but got {_written([rows.shape[1:] for rows in jacobian])}. "
                "Use one weighting per model, and the same shared parameters in every step."
            )
        for name, rows in zip(list(self._buffers), jacobian, strict=True):
            self._buffers[name] = self.get_buffer(name).to(rows.device)
        return list(self.buffers())

    def _zeros(self, rows: Tensor) -> Tensor:
        shape = (self.n_tasks, *rows.shape[1:])
        return torch.zeros(shape, dtype=_sum_type(rows), device=rows.device)

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Tensor],
        prefix: str,
        local_metadata: Mapping[str, int],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        for name in list(self._buffers):
            del self._buffers[name]
        for position in itertools.count():
            saved = state_dict.get(f"{prefix}{position}")
            if saved is None:
                break
            self.register_buffer(str(position), torch.empty_like(saved))
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


def _written(shapes: Sequence[torch.Size]) -> str:
    return ", ".join(str(tuple(shape)) for shape in shapes)
