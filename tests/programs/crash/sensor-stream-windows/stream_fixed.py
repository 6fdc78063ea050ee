from dataclasses import dataclass, replace

import torch
from torch import nn


@dataclass(frozen=True)
class StreamState:
    hidden: torch.Tensor
    total: float = 0.0
    seen: int = 0

    @classmethod
    def start(cls, size):
        return cls(torch.zeros(1, size))

    @property
    def average(self):
        return self.total / max(self.seen, 1)

    def record(self, value):
        return replace(self, total=self.total + value, seen=self.seen + 1)


class StreamModel(nn.Module):
    def __init__(self, size=24):
        super().__init__()
        self.size = size
        self.rnn = nn.GRU(1, size)
        self.out = nn.Linear(size, 1)

    def step(self, window, state):
        seq, hidden = self.rnn(window, state.hidden)
        return self.out(seq), replace(state, hidden=hidden.detach())
