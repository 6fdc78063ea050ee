"""The Gramian of the tasks' gradients, one parameter at a time.

One product of the flat [task, parameter] matrix would be 70 to 140 times less exact in float32
(measured; see benchmarks/gramian_exactness.py), and would need a copy of it.
"""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor


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
    matrix = as_matrix([row for row in rows if row is not None])
    products = (matrix @ matrix.T).to("cpu", torch.float64)
    index = torch.tensor(present)
    total[index[:, None], index] += products


def as_matrix(rows: Sequence[Tensor]) -> Tensor:
    """Rows of one parameter, dense or sparse, as [task, entry] in float32 or better."""
    if any(row.layout != torch.strided for row in rows):
        rows = _dense_where_any_is(rows)
    matrix = torch.stack([row.reshape(-1) for row in rows])
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
