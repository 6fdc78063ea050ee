"""What the two multi-task programs learn: scikit-learn's digits, or Census-Income.

Each task has a loss and a measure, and more is better for every measure: they can be averaged.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss
from torch.utils.data import Dataset, StackDataset
from torchmetrics import AUROC, Accuracy, Metric, R2Score


@dataclass(frozen=True)
class Task:
    n_outputs: int
    loss: Callable[[Tensor, Tensor], Tensor]  # of outputs [row, output] and targets
    measure: Callable[[], Metric]


@dataclass(frozen=True)
class Problem:
    tasks: Mapping[str, Task]
    encoder: Callable[[], nn.Module]  # makes what brings inputs to [row, width]
    width: int
    train: Dataset  # of {"inputs": …, task: target, …}
    validation: Dataset


class Columns(nn.Module):
    """The columns of a table as numbers: [row, column * units + number]."""

    def __init__(self, n_values: int, units: int = 8) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_values, units)

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        embedded = self.embedding(inputs["categories"])  # [row, column, unit]
        return torch.cat([embedded.flatten(1), inputs["numbers"]], dim=1)


def digits() -> Problem:
    """Which digit is it (classification), and how much ink is on the paper (regression)?"""
    pixels, labels = map(torch.tensor, load_digits(return_X_y=True))
    pixels = pixels.float() / 16  # [image, pixel]
    ink = pixels.mean(1, keepdim=True)
    order = torch.randperm(len(pixels), generator=torch.Generator().manual_seed(0))
    train, validation = order[:1400], order[1400:]
    ink = (ink - ink[train].mean()) / ink[train].std()
    tasks = {
        "digit": Task(10, cross_entropy, partial(Accuracy, task="multiclass", num_classes=10)),
        "ink": Task(1, mse_loss, R2Score),
    }
    parts = [
        StackDataset(inputs=pixels[rows], digit=labels[rows], ink=ink[rows])
        for rows in (train, validation)
    ]
    return Problem(tasks, nn.Identity, 64, *parts)


def census(rows: int | None = None) -> Problem:
    """Who earns above 50,000 dollars, who never married? See `census_mmoe` for where it is read."""
    sys.path.append(str(Path(__file__).resolve().with_name("census_mmoe")))
    from census import census_rows
    from data import census_data

    found = census_rows(rows)
    if found is None:
        raise SystemExit("Census-Income needs its file or the network; leave --census out.")
    data = census_data(found)
    task = Task(1, binary_cross_entropy_with_logits, partial(AUROC, task="binary"))
    width = 8 * data.train.categories.shape[1] + data.train.numbers.shape[1]
    parts = [
        StackDataset(
            inputs=StackDataset(categories=part.categories, numbers=part.numbers),
            **dict(zip(data.tasks, part.labels.T.unsqueeze(2), strict=True)),
        )
        for part in (data.train, data.validation)
    ]
    tasks = dict.fromkeys(data.tasks, task)
    return Problem(tasks, partial(Columns, data.values), width, *parts)
