"""Differentiable choices of one expert: binary codes under a smooth step."""

import torch
from torch import Tensor


def smooth_step(t: Tensor, gamma: float) -> Tensor:
    """0 below -γ/2, 1 above γ/2, between them the cubic -2/γ³ t³ + 3/(2γ) t + 1/2.

    Hazimeh, Ponomareva, Mol, Tan and Mazumder, The Tree Ensemble Layer, ICML 2020,
    https://arxiv.org/abs/2002.07772.
    """
    t = t.clamp(-gamma / 2, gamma / 2)  # no gradient outside, as the pieces have none
    return -2 / gamma**3 * t**3 + 3 / (2 * gamma) * t + 0.5


def binary_codes(n_experts: int) -> Tensor:
    """The numbers of the experts in binary digits, [expert, digit], booleans, high digit first."""
    n_digits = (n_experts - 1).bit_length()
    digits = torch.arange(n_digits - 1, -1, -1)
    return (torch.arange(n_experts)[:, None] >> digits & 1).bool()


def selectors(logits: Tensor, codes: Tensor, gamma: float) -> Tensor:
    """How much each selector takes of each expert, [..., selector, expert].

    The product over the digits of S(z) where an expert's digit is 1 and 1 - S(z) where it is 0,
    for logits z [..., selector, digit].
    """
    S = smooth_step(logits, gamma)[..., None, :]  # [..., selector, 1, digit]
    return torch.where(codes, S, 1 - S).prod(dim=-1)


def entropy(choice: Tensor) -> Tensor:
    """-Σ_e r_e log(r_e + 1e-6) for r [..., expert]; 0 where one expert is chosen."""
    return -(choice * (choice + 1e-6).log()).sum(dim=-1)
