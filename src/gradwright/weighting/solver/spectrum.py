"""The part of a Gramian that is more than rounding."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues [rank] above rounding, rising, with their eigenvectors [task, rank]."""

    values: Tensor
    vectors: Tensor

    def power(self, exponent: float, of: Tensor) -> Tensor:
        """The matrix to the power `exponent`, times the vector `of` [task]; -1: the pseudo-inverse.

        Zero where the matrix has rank 0.
        """
        return self.vectors @ (self.values**exponent * (self.vectors.mT @ of))


def spectrum(matrix: Tensor, precision: float) -> Spectrum:
    """The eigenvalues above `precision` times the largest, of a symmetric `matrix` [task, task]."""
    values, vectors = torch.linalg.eigh(matrix)
    kept = values > precision * values[-1].clamp(min=0)
    return Spectrum(values[kept], vectors[:, kept])
