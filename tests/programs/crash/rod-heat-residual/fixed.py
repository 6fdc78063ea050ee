import math
import torch
from torch import nn
from functools import partial
from physics_fixed import residual

torch.manual_seed(8)


class Field(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
                                 nn.Linear(width, 1))

    def forward(self, x, t):
        return self.net(torch.cat([x, t], dim=1))


def initial_error(field, n=64):
    x = torch.rand(n, 1)
    return (field(x, torch.zeros(n, 1)) - torch.sin(math.pi * x)).pow(2).mean()


def edge_error(field, n=64):
    t = torch.rand(n, 1)
    return field(torch.zeros(n, 1), t).pow(2).mean() + field(torch.ones(n, 1), t).pow(2).mean()


def physics_error(field, n=128, diffusivity=0.1):
    x = torch.rand(n, 1, requires_grad=True)
    t = torch.rand(n, 1, requires_grad=True)
    return residual(field, x, t, diffusivity).pow(2).mean()


terms = {"initial": initial_error, "edge": edge_error, "heat": partial(physics_error, diffusivity=0.05)}
field = Field()
optim = torch.optim.Adam(field.parameters(), lr=5e-3)
for step in range(60):
    active = ["initial", "edge"] if step < 20 else list(terms)
    loss = sum(terms[k](field) for k in active)
    optim.zero_grad()
    loss.backward()
    optim.step()
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.5f} ({', '.join(active)})")
