"""Training steps of three sizes, as a user writes them: the doctor follows these lines."""

from collections.abc import Callable

import torch
from torch import nn


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(64, 256)
        self.second = nn.Linear(256, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.first(x))
        return self.second(hidden)


class Cells(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gates = nn.Linear(16 + 32, 4 * 32)
        self.head = nn.Linear(32, 10)

    def cell(
        self, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        gates = self.gates(torch.cat([x, h], dim=1))
        i, f, o, g = gates.chunk(4, dim=1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = c = x.new_zeros(len(x), 32)
        for t in range(75):
            h, c = self.cell(x[:, t], h, c)
        return self.head(h)


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(100, 128)
        layer = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True, dropout=0.0)
        self.body = nn.TransformerEncoder(layer, 4)
        self.head = nn.Linear(128, 10)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(self.embed(tokens)).mean(dim=1))


def training(model: nn.Module, inputs: torch.Tensor) -> Callable[[], None]:
    """One step of training, as a user writes it."""
    targets = torch.randint(10, (len(inputs),))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        outputs = model(inputs)
        loss = nn.functional.cross_entropy(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
