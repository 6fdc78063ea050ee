# %% [markdown]
# # Coupling flow on two moons

# %%
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import MultivariateNormal

torch.manual_seed(0)


# %%
def two_moons(n):
    angle = torch.rand(n) * math.pi
    side = torch.randint(0, 2, (n,)).float()
    x = torch.cos(angle) * (1 - 2 * side) + side
    y = torch.sin(angle) * (1 - 2 * side) + 0.4 * side
    return torch.stack([x, y], 1) + 0.05 * torch.randn(n, 2)


# %%
class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, 32), nn.SiLU(), nn.Linear(32, 2))

    def forward(self, x):
        keep, move = (x[:, 1:], x[:, :1]) if self.flip else (x[:, :1], x[:, 1:])
        s, t = self.net(keep).chunk(2, 1)
        s = torch.tanh(s)
        move = move * s.exp() + t
        return torch.cat([move, keep] if self.flip else [keep, move], 1), s.sum(1)


# %%
layers = nn.ModuleList(Coupling(bool(i % 2)) for i in range(4))
loc = nn.Parameter(torch.zeros(2))
raw_scale = nn.Parameter(torch.zeros(2))

# %%
opt = torch.optim.Adam([*layers.parameters(), loc, raw_scale], lr=2e-3)
history = []

# %%
for i in range(60):
    z = two_moons(256)
    logdet = 0
    for layer in layers:
        z, s = layer(z)
        logdet = logdet + s
    prior = MultivariateNormal(loc, scale_tril=torch.diag(F.softplus(raw_scale)))
    nll = -(prior.log_prob(z) + logdet).mean()
    print(f"{i}: nll {nll.item():.3f}") if i % 10 == 0 else None
    opt.zero_grad()
    nll.backward()
    opt.step()
    history.append(nll.item())

# %%
print("best", round(min(history), 3))
