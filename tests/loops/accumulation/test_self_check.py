"""`check_window`: finds what is not exact, names it, and leaves everything as it was."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gradwright.loops import WindowError, WindowReport, check_window
from tests.loops.accumulation.small import Batch, batches, model, summed


def report(net: nn.Module, parts: list[Batch] | None = None) -> WindowReport:
    return check_window(lambda part: (summed(net, part), len(part[1])), parts or batches(), net)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_sum_is_exact(dtype: torch.dtype) -> None:
    found = report(model(dtype))

    assert found.difference <= (1e-6 if dtype == torch.float32 else 1e-14)
    assert found.is_exact and found.in_one_batch and found.gives_a_mean is False
    assert str(found).startswith("exact: the window differs from the same in one batch by ")
    assert len(str(found).splitlines()) == 1


def test_a_mean_is_said_in_words() -> None:
    net = model()
    found = check_window(lambda b: (F.cross_entropy(net(b[0]), b[1]), len(b[1])), batches(), net)

    assert found.difference > 1 and not found.is_exact and found.gives_a_mean
    assert "NOT exact" in str(found) and "`step` returns a mean, not a sum" in str(found)
    assert found.worst in dict(
        net.named_parameters()
    ) and f"Most of it is in {found.worst!r}" in str(found)


def test_a_batch_norm_is_named() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    parts = [torch.randn(n, 3) for n in (4, 7, 3)]
    found = check_window(lambda x: (net(x).square().sum(), len(x)), parts, net)

    assert found.difference > 1e-3 and found.batch_norms == ("'1'",)
    assert "BatchNorm in train mode ('1') normalises each micro-batch by itself." in str(found)


def test_dropout_is_named() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))
    parts = [torch.randn(n, 3) for n in (4, 7, 3)]

    def step(x: Tensor) -> tuple[Tensor, int]:
        return net(x).square().sum(), len(x)

    assert check_window(step, parts, net).dropouts == ("'1'",)
    assert "Dropout in train mode ('1')" in str(check_window(step, parts, net))
    net.eval()
    assert check_window(step, parts, net).is_exact


def test_everything_stays_as_it_was() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
    net(torch.randn(5, 3)).sum().backward()
    waiting = net(torch.randn(5, 3)).sum()
    before = [(p.grad, p.grad.clone()) for p in net.parameters() if p.grad is not None]
    buffers = [(b, b.clone()) for b in net.buffers()]
    state = torch.get_rng_state()
    parts = [torch.randn(n, 3) for n in (4, 7, 3)]
    torch.set_rng_state(state)
    check_window(lambda x: (net(x).square().sum(), len(x)), parts, net)

    assert torch.equal(torch.get_rng_state(), state)
    for parameter, (gradient, values) in zip(net.parameters(), before, strict=True):
        assert parameter.grad is gradient and torch.equal(gradient, values)
    for now, (buffer, values) in zip(net.buffers(), buffers, strict=True):
        assert now is buffer and torch.equal(buffer, values)
    waiting.backward()


def test_it_stays_as_it_was_after_an_error() -> None:
    net = model()
    summed(net, batches()[0]).backward()
    before = [parameter.grad for parameter in net.parameters()]
    with pytest.raises(ZeroDivisionError):
        check_window(lambda part: (summed(net, part), 1 // 0), batches(), net)

    assert all(p.grad is old for p, old in zip(net.parameters(), before, strict=True))


@dataclass
class Tokens:
    ids: Tensor
    labels: Tensor
    source: str = "web"


def test_nested_batches_are_joined() -> None:
    net = model()
    parts = [Tokens(*part) for part in batches()]
    found = check_window(lambda b: (summed(net, (b.ids, b.labels)), len(b.ids)), parts, net)

    assert found.in_one_batch and found.is_exact


NOT_JOINED: dict[str, list[Any]] = {
    "shapes differ": [{"x": torch.ones(2, n, 3)} for n in (4, 5)],
    "a number among them": [{"x": torch.ones(2, 3), "n": 2}] * 2,
    "no dimension": [{"x": torch.ones(2, 3), "n": torch.tensor(2)}] * 2,
    "structures differ": [{"x": torch.ones(2, 3)}, {"x": torch.ones(2, 3), "y": torch.ones(2, 3)}],
}


@pytest.mark.parametrize("parts", NOT_JOINED.values(), ids=NOT_JOINED.keys())
def test_what_cannot_be_joined_is_added_up(parts: list[Any]) -> None:
    net = nn.Linear(3, 1)
    found = check_window(lambda b: (net(b["x"]).square().sum(), b["x"].numel()), parts, net)

    assert not found.in_one_batch and found.is_exact
    assert "could not be joined: give `whole`" in str(found)


def test_a_mean_is_found_where_shapes_differ() -> None:
    """One micro-batch can always be joined with itself."""
    net = nn.Linear(3, 1)
    parts = [torch.randn(2, n, 3) for n in (4, 5)]
    found = check_window(lambda x: (net(x).square().mean(), x[..., 0].numel()), parts, net)

    assert not found.in_one_batch and found.gives_a_mean and not found.is_exact


def test_whole_joins_them() -> None:
    net = nn.Linear(3, 1)
    parts = [torch.randn(2, n, 3) for n in (4, 5)]
    found = check_window(
        lambda x: (net(x).square().sum(), x[..., 0].numel()),
        parts,
        net,
        whole=lambda several: torch.cat([each.flatten(0, 1) for each in several]),
    )

    assert found.in_one_batch and found.is_exact


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda batch: batch, "`step` returned a Tensor"),
        (lambda batch: (batch.sum(), 3), "the loss has no graph"),
        (lambda batch: (batch.sum().requires_grad_(), -3), "`count` is -3"),
    ],
)
def test_steps_that_cannot_be(step: Any, message: str) -> None:
    with pytest.raises(WindowError, match=message):
        check_window(step, [torch.ones(2, 3)], nn.Linear(3, 1))


def test_no_micro_batches() -> None:
    with pytest.raises(WindowError, match="`micro_batches` is empty"):
        check_window(lambda b: (b, 1), [], model())


@pytest.mark.slow
def test_t5_with_the_mean_that_it_returns() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.T5Config(
        vocab_size=40, d_model=16, d_kv=8, d_ff=24, num_layers=1, num_heads=2, dropout_rate=0.0
    )
    config.decoder_start_token_id = 0
    torch.manual_seed(0)
    net = transformers.T5ForConditionalGeneration(config)
    parts = []
    for length in (3, 7, 5, 9):
        labels = torch.full((2, 9), -100)
        labels[:, :length] = torch.randint(1, 40, (2, length))
        parts.append({"input_ids": torch.randint(1, 40, (2, 6)), "labels": labels})

    def count(batch: dict[str, Tensor]) -> Tensor:
        return (batch["labels"] != -100).sum()

    naive = check_window(lambda batch: (net(**batch).loss, count(batch)), parts, net)
    summed = check_window(lambda b: (net(**b).loss * count(b), count(b)), parts, net)

    assert naive.gives_a_mean and naive.difference > 2
    assert summed.is_exact and summed.difference <= 1e-6
