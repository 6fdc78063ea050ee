"""The Gramian of the tasks' gradients, one parameter at a time.

One product of the flat [task, parameter] matrix would be a thousand times less exact in float32
(8e-5 to 1.5e-3 against 5e-8: benchmarks/gramian_exactness.py), and would need a copy of it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge

Rows = Mapping[GradientEdge, Sequence[Tensor | None]]

_CHUNK = 2**18  # entries of the matrix made at once: 1 MB of float32 stays in the cache


def gramian_of(rows: Iterable[Sequence[Tensor | None]], n_tasks: int) -> Tensor:
    """G[i, j] = Σ over parameters of <row i, row j>: [task, task], float64, on the CPU."""
    total = torch.zeros(n_tasks, n_tasks, dtype=torch.float64)
    for of_one_parameter in rows:
        add_products(total, of_one_parameter)
    return total


def add_products(total: Tensor, rows: Sequence[Tensor | None]) -> None:
    """Add the inner products of one parameter's rows [task] to `total` [task, task]."""
    present = [task for task, row in enumerate(rows) if row is not None]
    if not present:
        return
    matrices = map(as_matrix, _stretches([row for row in rows if row is not None]))
    products = torch.stack([matrix @ matrix.T for matrix in matrices])
    index = torch.tensor(present)
    total[index[:, None], index] += products.to("cpu", torch.float64).sum(0)


def add_products_of(total: Tensor, tasks: Sequence[int], matrix: Tensor) -> None:
    """Add the inner products of the rows of `matrix` [task, entry] to `total` [task, task]."""
    matrix = _widened(matrix)
    index = torch.tensor(tasks)
    total[index[:, None], index] += (matrix @ matrix.T).to("cpu", torch.float64)


def cross_products(left: Rows, right: Rows, n_tasks: int) -> Tensor:
    """J₁ J₂ᵀ of two batches' rows, [task, task], float64, on the CPU."""
    total = torch.zeros(n_tasks, n_tasks, dtype=torch.float64)
    for edge in left.keys() & right.keys():
        mine = [task for task, row in enumerate(left[edge]) if row is not None]
        theirs = [task for task, row in enumerate(right[edge]) if row is not None]
        if mine and theirs:
            rows = [row for row in (*left[edge], *right[edge]) if row is not None]
            first, second = as_matrix(rows).split([len(mine), len(theirs)])
            index = torch.tensor(mine)[:, None], torch.tensor(theirs)
            total[index] += (first @ second.T).to("cpu", torch.float64)
    return total


def squared_length(gradients: Iterable[Tensor]) -> float:
    """The sum of the squares of all entries, dense or sparse, in float64."""
    norms = [
        torch.linalg.vector_norm(
            one.coalesce().values() if one.is_sparse else one, dtype=torch.float64
        )
        for one in gradients
    ]
    return float(torch.stack([norm.cpu() for norm in norms]).square().sum()) if norms else 0.0


def _stretches(rows: Sequence[Tensor]) -> Iterator[Sequence[Tensor]]:
    """The same rows, a stretch of their entries at a time: the matrix made of them is a copy."""
    if any(row.layout != torch.strided for row in rows):
        yield rows
        return
    flat = _flat(rows)
    step = max(1, _CHUNK // len(rows))
    for start in range(0, max(1, flat[0].numel()), step):
        yield [row[start : start + step] for row in flat]


def _flat(rows: Sequence[Tensor]) -> list[Tensor]:
    """Each row as [entry], in the order of memory where that is one for all: then nothing moves."""
    strides = rows[0].stride()
    order = list(range(rows[0].dim()))
    if all(row.stride() == strides for row in rows):
        order.sort(key=lambda dim: -strides[dim])
    return [row.permute(order).reshape(-1) for row in rows]


def as_matrix(rows: Sequence[Tensor]) -> Tensor:
    """Rows of one parameter, dense or sparse, as [task, entry] in float32 or better."""
    if any(row.layout != torch.strided for row in rows):
        rows = _dense_where_any_is(rows)
    return _widened(torch.stack([row.reshape(-1) for row in rows]))


def _widened(matrix: Tensor) -> Tensor:
    if matrix.is_complex():
        matrix = torch.view_as_real(matrix).flatten(1)  # <a, b> is the real part, as for a step
    # bfloat16 has 8 bits: squares would keep 2 digits (and its CPU kernel crashes in torch 2.13)
    return matrix if matrix.dtype in (torch.float32, torch.float64) else matrix.float()


def _dense_where_any_is(rows: Sequence[Tensor]) -> list[Tensor]:
    """Sparse gradients of an embedding, cut down to the rows of the table that any of them has."""
    sparse = [row.coalesce() for row in rows if row.layout == torch.sparse_coo]
    if len(sparse) < len(rows) or any(row.sparse_dim() != 1 for row in sparse):
        return [row.to_dense() if row.layout != torch.strided else row for row in rows]
    used, where = torch.cat([row.indices()[0] for row in sparse]).unique(return_inverse=True)
    found = []
    for row, at in zip(sparse, where.split([row._nnz() for row in sparse]), strict=True):
        dense = row.values().new_zeros(len(used), *row.values().shape[1:])
        found.append(dense.index_copy(0, at, row.values()))
    return found
