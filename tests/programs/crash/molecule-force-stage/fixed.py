import torch
from torch import nn

from geometry_fixed import Standardizer, clusters

torch.manual_seed(33)


class EnergyNet(nn.Module):
    """Sums a pair energy over all pairs of atoms."""

    def __init__(self, width=32):
        super().__init__()
        self.standard = Standardizer()
        self.pair = nn.Sequential(nn.Linear(2, width), nn.Softplus(), nn.Linear(width, width), nn.Softplus(),
                                  nn.Linear(width, 1))

    def forward(self, position):
        i, j = torch.triu_indices(position.shape[1], position.shape[1], 1)
        squared = (position[:, i] - position[:, j]).pow(2).sum(-1)
        descriptor = torch.stack([squared, torch.exp(-squared)], dim=-1)
        return self.pair(self.standard(descriptor)).sum(dim=(1, 2))


class Fit:
    def __init__(self, net, stages):
        self.net, self.stages = net, stages
        self.optim = torch.optim.Adam(net.parameters(), lr=3e-3)

    def energy_term(self, pos, energy, force):
        return (self.net(pos) - energy).pow(2).mean()

    def force_term(self, pos, energy, force):
        pos = pos.clone().requires_grad_(True)
        predicted = self.net(pos)
        (slope,) = torch.autograd.grad(predicted.sum(), pos, create_graph=True)
        return (predicted - energy).pow(2).mean() + 10 * (slope + force).pow(2).mean()

    def run(self):
        for name, count in self.stages:
            term = getattr(self, name)
            for step in range(count):
                loss = term(*clusters(16))
                self.optim.zero_grad()
                loss.backward()
                self.optim.step()
                if step % 8 == 0:
                    print(f"{name} step {step} loss {loss.item():.4f}")


Fit(EnergyNet(), [("energy_term", 32), ("force_term", 24)]).run()
