from functools import partial

import torch
from torch import nn

from ssm import DiagonalSSM

torch.manual_seed(14)


class Tagger(nn.Module):
    def __init__(self, width=16, classes=3, make=partial(DiagonalSSM, order=4)):
        super().__init__()
        self.lift = nn.Linear(1, width)
        self.mix = nn.ModuleList([make(width), make(width)])
        self.out = nn.Linear(width, classes)

    def forward(self, signal):
        with torch.set_grad_enabled(self.training):
            h = self.lift(signal)
            for block in self.mix:
                h = h + torch.relu(block(h))
            return self.out(h.mean(dim=1))


def waves(n):
    kind = torch.randint(3, (n,))
    t = torch.linspace(0, 6.28, 24)
    shape = torch.stack([torch.sin(2 * t), torch.sign(torch.sin(2 * t)), torch.sin(5 * t)])
    return (shape[kind] + 0.2 * torch.randn(n, 24)).unsqueeze(-1), kind


def score(net, data):
    net.eval()
    x, y = data
    return (net(x).argmax(dim=1) == y).float().mean().item()


def fit(net, epochs=4, batches=6):
    held = waves(90)
    optim = torch.optim.Adam(net.parameters(), lr=5e-3)
    for epoch in range(epochs):
        net.train()
        total = 0.0
        for _ in range(batches):
            x, y = waves(48)
            loss = nn.functional.cross_entropy(net(x), y)
            optim.zero_grad()
            loss.backward()
            optim.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / batches:.4f} held out {score(net, held):.3f}")


fit(Tagger())
