"""Scaling a Gramian to gradients of length 1, and what can be told from rounding in it."""

import torch
from torch import Tensor


def unit_diagonal(gramian: Tensor) -> tuple[Tensor, Tensor]:
    """The cosines [task, task] and the lengths [task] of the gradients.

    A gradient of length 0 is given the length 1 and cosines of 0 to all others: then it neither
    agrees nor disagrees with anyone, and nothing divides by 0. Cosines that rounding has made
    impossible are mended.
    """
    lengths = gramian.diagonal().clamp(min=0).sqrt()
    lengths = lengths.masked_fill(lengths == 0, 1)
    cosines = gramian / lengths.outer(lengths)
    cosines = cosines.clamp(-1, 1)
    cosines.fill_diagonal_(1)
    return _semidefinite(cosines), lengths


def precision(gramian: Tensor) -> float:
    """The relative size below which a number made from `gramian` may be rounding.

    The products of the Gramian are taken to be exact to a few units in the last place of its type;
    sums over tasks add them up. 1e-12 is the floor: a float64 Gramian is made of gradients that
    were computed in less.
    """
    return max(1e-12, 10 * len(gramian) * torch.finfo(gramian.dtype).eps)


def _semidefinite(matrix: Tensor) -> Tensor:
    """`matrix`, or a multiple of 1 added where an eigenvalue is below -1e-10.

    A Gramian of float32 products of many gradients that depend on each other is like that.
    """
    ridge = 1e-10
    identity = torch.eye(len(matrix), dtype=matrix.dtype)
    while torch.linalg.cholesky_ex(matrix + ridge * identity).info:
        ridge *= 10
    return matrix if ridge == 1e-10 else matrix + ridge * identity
