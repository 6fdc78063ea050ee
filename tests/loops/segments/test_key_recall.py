"""Whether the state really is carried: a key shown at the start is asked for until the end."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import gradwright as gw
from gradwright.loops.segments.segment import Segment

KEYS, BLANK, ASK = 8, 8, 9  # symbols 0 to 7, and two more
TIMES, LENGTH, BATCHES, ROWS = 64, 16, 60, 32

Batch = tuple[Tensor, Tensor]


class Recall(nn.Module):
    """Names the key at the end of each segment."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(KEYS + 2, 32)
        self.gru = nn.GRU(32, 64, batch_first=True)
        self.head = nn.Linear(64, KEYS)

    def run(self, segment: Batch, state: object) -> tuple[Tensor, object, Tensor]:
        """The loss, the state, and which rows [row] were right."""
        symbols, keys = segment
        hidden, state = self.gru(self.embed(symbols), state)
        logits = self.head(hidden[:, -1])
        return F.cross_entropy(logits, keys[:, -1]), state, logits.argmax(1) == keys[:, -1]

    def forget(self, segment: Batch, state: object) -> tuple[Tensor, object, Tensor]:
        """The same, but each segment begins anew: what a loop does that loses its state."""
        return self.run(segment, None)


def batch(rows: int) -> Batch:
    """Symbols and the key to name [row, time]: the key at time 0, asked for every 16 times."""
    keys = torch.randint(KEYS, (rows, 1))
    symbols = torch.full((rows, TIMES), BLANK)
    symbols[:, LENGTH - 1 :: LENGTH] = ASK
    symbols[:, :1] = keys
    return symbols, keys.expand(-1, TIMES)


def accuracies(run: Callable, model: Recall) -> list[float]:
    """The share of right answers in each segment, after 60 batches of training."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    bptt: gw.tbptt[Batch] = gw.tbptt(run, length=LENGTH, dim=1)
    for _ in range(BATCHES):
        for segment in bptt(batch(ROWS)):
            optimizer.zero_grad()
            segment.loss.backward()
            optimizer.step()
    with torch.no_grad():
        return [right(segment) for segment in bptt(batch(512))]


def right(segment: Segment) -> float:
    assert isinstance(segment.output, Tensor)
    return segment.output.float().mean().item()


@pytest.mark.parametrize("seed", range(3))
def test_the_key_lives_on_in_the_state(seed: int) -> None:
    torch.manual_seed(seed)
    model = Recall()
    found = accuracies(model.run, model)

    assert len(found) == TIMES // LENGTH
    assert found[-1] >= 0.9


@pytest.mark.parametrize("seed", range(3))
def test_without_the_state_it_is_lost(seed: int) -> None:
    torch.manual_seed(seed)
    model = Recall()
    found = accuracies(model.forget, model)

    assert found[0] >= 0.9
    assert found[-1] <= 0.25
