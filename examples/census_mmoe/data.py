"""Two tasks on Census-Income: does a person earn above 50,000 dollars, and never married?"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, repeat
from operator import itemgetter

import torch
from census import Row, census_rows
from torch import Tensor

MARITAL, INCOME, WEIGHT = 7, 41, 24  # the two tasks' own columns; how many people a row stands for
AMOUNTS = (5, 16, 17, 18)  # dollars: wage per hour, capital gains and losses, dividends
NUMBERS = (0, *AMOUNTS, 30, 39)  # and age, persons working for the employer, weeks worked
CATEGORIES = tuple(set(range(42)) - {*NUMBERS, MARITAL, INCOME, WEIGHT})

SEED = 0
TRAIN, VALIDATION = 0.70, 0.15  # the rest is the test part


@dataclass(frozen=True)
class Part:
    """Some of the rows. Each categorical value is a number, its row in one embedding table."""

    categories: Tensor  # [row, column], integers
    numbers: Tensor  # [row, column], mean 0 and deviation 1 on the training part
    labels: Tensor  # [row, task], 0 or 1


@dataclass(frozen=True)
class Data:
    """A data set in three parts."""

    name: str
    tasks: tuple[str, ...]
    values: int  # rows of the embedding table
    epochs: int  # passes over the training part that are enough
    train: Part
    validation: Part
    test: Part


def load(limit: int | None = None) -> Data:
    """Census-Income, or scikit-learn's digits where it cannot be had; at most `limit` rows."""
    rows = census_rows(limit)
    return digits_data(limit) if rows is None else census_data(rows)


def census_data(rows: Sequence[Row]) -> Data:
    """Rows of the file as tensors. A task's own column and the instance weight are no features."""
    members = split(list(map(itemgetter(*CATEGORIES, *NUMBERS), rows)))
    columns = list(zip(*rows, strict=True))
    categories, values = _encode([columns[column] for column in CATEGORIES], members[0])
    numbers = torch.tensor([list(map(float, columns[column])) for column in NUMBERS]).T
    amounts = [NUMBERS.index(column) for column in AMOUNTS]
    numbers[:, amounts] = numbers[:, amounts].log1p()  # most are 0, some are 99,999
    labels = [[row[INCOME] == "50000+.", row[MARITAL] == "Never married"] for row in rows]
    parts = _parts(members, categories, numbers, torch.tensor(labels).float())
    tasks = ("income above 50K", "never married")
    return Data("Census-Income (UCI KDD)", tasks, values, 6, *parts)


def digits_data(limit: int | None = None) -> Data:
    """Pixels of handwritten digits as categories, with two tasks of the same kind."""
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    pixels, digits = pixels[:limit], torch.tensor(digits[:limit])
    members = split([tuple(row) for row in pixels.tolist()])
    levels = torch.tensor(pixels).long()  # [row, pixel], 0 to 16
    labels = torch.stack([digits % 2 == 0, digits < 5], dim=1).float()
    ink = levels.float().unflatten(1, (8, 8)).mean(2)  # [row, line of the image]
    parts = _parts(members, levels + 17 * torch.arange(64), ink, labels)
    return Data("digits (scikit-learn)", ("is even", "is below five"), 17 * 64, 60, *parts)


def split(features: Sequence[object]) -> list[Tensor]:
    """The rows of the training, validation and test part. Equal rows go to the same part.

    A fifth of the people gave the same answers as another: a row of the training part is no test.
    """
    seen: dict[object, int] = {}
    first = torch.tensor(list(map(seen.setdefault, features, count())))  # the first row like it
    draws = torch.rand(len(first), generator=torch.Generator().manual_seed(SEED))[first]
    train, validation = draws < TRAIN, (draws >= TRAIN) & (draws < TRAIN + VALIDATION)
    return [part.nonzero().squeeze(1) for part in (train, validation, ~(train | validation))]


def _encode(columns: Sequence[Sequence[str]], train: Tensor) -> tuple[Tensor, int]:
    """Numbers for the values that the training part has; 0 stands for all others."""
    encoded, values, rows = [], 1, train.tolist()
    for column in columns:
        known = sorted(set(map(column.__getitem__, rows)))
        codes = dict(zip(known, count(values), strict=False))
        encoded.append(list(map(codes.get, column, repeat(0))))
        values += len(known)
    return torch.tensor(encoded).T.contiguous(), values


def _parts(
    members: Sequence[Tensor], categories: Tensor, numbers: Tensor, labels: Tensor
) -> list[Part]:
    """The rows of each part, numbers standardised by the first part alone."""
    train = numbers[members[0]]
    scaled = (numbers - train.mean(0)) / train.std(0).clamp(min=1e-6)
    return [Part(categories[rows], scaled[rows], labels[rows]) for rows in members]
