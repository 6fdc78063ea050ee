"""What `benchmarks/accumulation.py` measures with, and that it drives the libraries as they are."""

import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from benchmarks import accumulation
from benchmarks._accumulation_exact import distance, exact, gradient_of
from benchmarks._accumulation_models import MODELS, Example, LanguageModel, collate
from benchmarks._accumulation_peers import LIBRARIES, Updates

pytest.importorskip("transformers")
ROOT = Path(__file__).resolve().parents[2]


def model_of(kind: LanguageModel) -> nn.Module:
    torch.manual_seed(0)
    return kind.make().train()


def test_distance_tells_length_from_direction() -> None:
    exact = torch.tensor([3.0, 4.0])
    longer = distance(2 * exact, exact)
    turned = distance(torch.tensor([-4.0, 3.0]), exact)

    assert (longer.error, longer.ratio, longer.cosine) == pytest.approx((1, 2, 1))
    assert (turned.error, turned.ratio, turned.cosine) == pytest.approx((2**0.5, 1, 0))


@pytest.mark.parametrize("name", MODELS)
def test_as_many_tokens_are_predicted_as_asked_for(name: str) -> None:
    """And the model's own loss is the mean over them."""
    kind = MODELS[name]
    model = model_of(kind)
    batch = collate(kind.examples([2, 5]))

    loss, count = kind.loss_sum(model, batch)

    assert count == 7
    torch.testing.assert_close(loss / count, model(**batch).loss)


@pytest.mark.parametrize("name", MODELS)
def test_padding_changes_nothing(name: str) -> None:
    """One piece is the mean of its examples, weighted by their counts; the model stays clean."""
    kind = MODELS[name]
    model = model_of(kind)
    examples = kind.examples([1, 6])

    whole = exact(kind, model, examples, torch.float64)

    short, long = (exact(kind, model, [example], torch.float64) for example in examples)
    assert distance((short + 6 * long) / 7, whole).error < 1e-6
    assert not gradient_of(model).any()


def test_updates_are_kept_and_not_made() -> None:
    model = nn.Linear(2, 1, bias=False)
    before = model.weight.detach().clone()
    optimizer = Updates(model)

    def closure() -> float:
        loss = model(torch.tensor([[1.0, 2.0]])).sum()
        loss.backward()
        return loss.item()

    loss = optimizer.step(closure)

    assert loss == pytest.approx(float(before @ torch.tensor([1.0, 2.0])))
    assert [update.tolist() for update in optimizer.kept] == [[1.0, 2.0]]
    assert torch.equal(model.weight, before)


def test_a_row_has_a_cell_for_each_window(monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(
        kind: LanguageModel, model: nn.Module, examples: Sequence[Example], size: int
    ) -> list[Tensor]:
        return [2 * exact(kind, model, examples[:size], torch.float64)]

    monkeypatch.setitem(LIBRARIES, "twice", twice)

    whole, ours, other = accumulation.rows("BERT", (1, 6, 2, 5, 3), ["gradwright", "twice"])

    assert re.fullmatch(r"  in one piece +(\S+e-07 +0.0e\+00 +1.0000 +1.0000 *){2}", whole)
    assert re.fullmatch(r"  gradwright +(\S+e-0[78] +\S+e-0[78] +1.0000 +1.0000 *){2}", ours)
    assert re.fullmatch(r"  twice +1.0e\+00 +1.0e\+00 +2.0000 +1.0000 +no step", other)


@pytest.mark.slow
def test_every_library_runs() -> None:
    """With equal counts at least the direction of a full window is right, defects or not."""
    installed = [name for name in LIBRARIES if find_spec(name.lower())]
    command = [sys.executable, "-m", "benchmarks.accumulation", "--models", "BERT", "--libraries"]

    result = subprocess.run([*command, *installed], capture_output=True, text=True, cwd=ROOT)

    assert result.returncode == 0, result.stderr
    equal = result.stdout.partition("\nBERT\n")[2].partition("\n\n")[0]
    cosines = {row.split()[0]: row.split()[4] for row in equal.splitlines()[1:]}
    assert cosines == dict.fromkeys(installed, "1.0000")
