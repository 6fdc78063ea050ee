"""A small convex quadratic program with inequalities and one equality."""

import torch
from torch import Tensor


def minimise(H: Tensor, linear: Tensor, A: Tensor, ones: Tensor) -> Tensor:
    """The x that minimises ½ xᵀ H x + linearᵀ x for A x ≥ 0 and onesᵀ x = 1.

    `H` [n, n] is positive semi-definite. A primal-dual interior point method: Newton's method on
    the conditions of optimality, with the products of slacks and multipliers driven to 0.

    Nocedal and Wright, Numerical Optimization, 2006, section 16.6.
    """
    x = ones / ones.sum()
    y = torch.zeros((), dtype=H.dtype)
    slack = (A @ x).clamp(min=1.0)
    z = torch.ones_like(slack)
    for _ in range(100):
        steep = H @ x + linear - A.T @ z - y * ones
        off = A @ x - slack
        gap = slack @ z / len(z)
        if max(steep.abs().max(), off.abs().max(), (ones @ x - 1).abs(), gap) < 1e-12 * _size(H, z):
            break
        # aim at a tenth of the gap, then go almost all the way to the boundary
        centre = z - 0.1 * gap / slack
        K = _kkt(H + A.T @ ((z / slack)[:, None] * A), ones)
        right = -steep - A.T @ (centre + z / slack * off)
        step = torch.linalg.solve(K, torch.cat([right, (1 - ones @ x)[None]]))
        dx, dy = step[:-1], -step[-1]
        dslack = A @ dx + off
        dz = -centre - z / slack * dslack
        t = 0.99 * min(_room(slack, dslack), _room(z, dz))
        x, y, slack, z = x + t * dx, y + t * dy, slack + t * dslack, z + t * dz
    return x


def _kkt(top: Tensor, ones: Tensor) -> Tensor:
    # a singular H with a free direction is solved for by the smallest ridge that rounding allows
    ridge = 1e-14 * top.diagonal().abs().max() * torch.eye(len(top), dtype=top.dtype)
    corner = torch.zeros(1, 1, dtype=top.dtype)
    upper = torch.cat([top + ridge, ones[:, None]], dim=1)
    return torch.cat([upper, torch.cat([ones[None], corner], dim=1)])


def _room(values: Tensor, change: Tensor) -> float:
    """How far along `change` until a value reaches 0, at most 1 / 0.99."""
    falls = change < 0
    return min(1 / 0.99, float((-values[falls] / change[falls]).min()) if falls.any() else 2.0)


def _size(H: Tensor, z: Tensor) -> float:
    return 1 + float(H.abs().max()) + float(z.max())
