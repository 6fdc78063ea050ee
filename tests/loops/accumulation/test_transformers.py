"""Language models of Transformers: a window has the gradient of its batch in one piece.

Ragged micro-batches of padded sequences, the last window shorter, and nothing said of the model.
"In one piece" is one padded forward of all the window's sequences, in float32 and in float64; a
window in float32 must be within 1e-6 of both.
"""

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn

from benchmarks._accumulation_exact import distance, exact, gradient_of
from benchmarks._accumulation_models import (
    IGNORED,
    MODELS,
    Batch,
    Example,
    LanguageModel,
    collate,
)
from gradwright.loops import windows

pytest.importorskip("transformers")

NEAR = 1e-6
SIZE = 4
COUNTS = [(1, 4), (6, 2), (3, 12), (5, 1), (2, 7)]
"""Predicted tokens of the sequences of each micro-batch: a window of 4, then one of 1."""

Loss = Callable[[LanguageModel, nn.Module, Batch], tuple[Tensor, int]]


def loss_sum(kind: LanguageModel, model: nn.Module, batch: Batch) -> tuple[Tensor, int]:
    """From the logits and the labels."""
    return kind.loss_sum(model, batch)


def mean_times_count(kind: LanguageModel, model: nn.Module, batch: Batch) -> tuple[Tensor, int]:
    """From the loss that the model returns, a mean over the tokens it predicts."""
    count = kind.count(batch)
    return model(**batch).loss * count, count


@pytest.mark.parametrize("loss_of", [loss_sum, mean_times_count])
@pytest.mark.parametrize("name", MODELS)
def test_a_window_is_its_batch_in_one_piece(name: str, loss_of: Loss) -> None:
    kind = MODELS[name]
    model = make(kind)
    micro_batches = micro_batches_of(kind, COUNTS)

    found = of_windows(kind, model, micro_batches, loss_of)

    assert len(found) == 2
    for window, part in zip(found, [micro_batches[:SIZE], micro_batches[SIZE:]], strict=True):
        for dtype in (torch.float32, torch.float64):
            whole = exact(kind, model, joined(part), dtype)
            assert distance(window, whole).error <= NEAR


@pytest.mark.parametrize("name", MODELS)
def test_a_mean_of_means_is_another_gradient(name: str) -> None:
    """So the counts are ragged enough for the test above to fail."""
    kind = MODELS[name]
    model = make(kind)
    micro_batches = micro_batches_of(kind, COUNTS[:SIZE])

    for each in micro_batches:
        (model(**collate(each)).loss / SIZE).backward()

    whole = exact(kind, model, joined(micro_batches), torch.float32)
    assert distance(gradient_of(model), whole).error > 0.1


@pytest.mark.parametrize("name", MODELS)
def test_a_micro_batch_without_a_predicted_token_adds_nothing(name: str) -> None:
    """The mean that the model returns is then 0 / 0: only the sum will do."""
    kind = MODELS[name]
    model = make(kind)
    micro_batches = micro_batches_of(kind, COUNTS[:2])
    (example,) = kind.examples([3])
    silent = {**example, "labels": torch.full_like(example["labels"], IGNORED)}

    found = of_windows(kind, model, [[silent], *micro_batches], loss_sum)

    assert model(**collate([silent])).loss.isnan()
    whole = exact(kind, model, joined(micro_batches), torch.float32)
    assert len(found) == 1
    assert distance(found[0], whole).error <= NEAR


def make(kind: LanguageModel) -> nn.Module:
    torch.manual_seed(0)
    return kind.make().train()


def micro_batches_of(kind: LanguageModel, counts: Sequence[Sequence[int]]) -> list[list[Example]]:
    examples = iter(kind.examples([count for each in counts for count in each]))
    return [[next(examples) for _ in each] for each in counts]


def joined(micro_batches: list[list[Example]]) -> list[Example]:
    return [example for each in micro_batches for example in each]


def of_windows(
    kind: LanguageModel, model: nn.Module, micro_batches: list[list[Example]], loss_of: Loss
) -> list[Tensor]:
    """The gradient after each window, [parameter]."""
    found = []
    for window in windows([collate(each) for each in micro_batches], size=SIZE, model=model):
        for batch in window:
            loss, count = loss_of(kind, model, batch)
            window.backward(loss, count=count)
        window.close()
        found.append(gradient_of(model))
        model.zero_grad()
    return found
