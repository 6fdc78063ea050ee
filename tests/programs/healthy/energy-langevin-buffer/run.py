import random

import torch
from torch import nn

random.seed(2)
torch.manual_seed(2)
energy = nn.Sequential(nn.Linear(2, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 1))
average = torch.optim.swa_utils.AveragedModel(energy)
optim = torch.optim.Adam(energy.parameters(), lr=2e-3)
replay = [torch.rand(2) * 4 - 2 for _ in range(256)]


def spiral(n):
    t = torch.rand(n) * 6
    return torch.stack([t * t.cos(), t * t.sin()], 1) / 4 + 0.05 * torch.randn(n, 2)


@torch.no_grad()
def langevin(net, x, steps=12, size=0.05):
    """Gradients are off here except for the slope with respect to the points."""
    flags = [p.requires_grad for p in net.parameters()]
    net.requires_grad_(False)
    x = x.clone()
    for _ in range(steps):
        x.requires_grad_(True)
        with torch.enable_grad():
            (slope,) = torch.autograd.grad(net(x).sum(), x)
        x = x.detach()
        x.add_(slope.clamp_(-1, 1), alpha=-size).add_(torch.randn_like(x), alpha=0.02)
    for p, flag in zip(net.parameters(), flags):
        p.requires_grad_(flag)
    return x


def negatives(net, n):
    slots = random.sample(range(len(replay)), n)
    start = torch.stack([replay[i] if random.random() > 0.1 else torch.rand(2) * 4 - 2 for i in slots])
    points = langevin(net, start)
    for i, p in zip(slots, points):
        replay[i] = p
    return points


for step in range(60):
    real, fake = spiral(64), negatives(energy, 64)
    real.requires_grad_(True)
    e_real, e_fake = energy(real), energy(fake)
    (slope,) = torch.autograd.grad(e_real.sum(), real, create_graph=True)
    loss = e_real.mean() - e_fake.mean() + 0.1 * (e_real**2 + e_fake**2).mean() + 0.01 * slope.pow(2).sum(1).mean()
    optim.zero_grad()
    loss.backward()
    with torch.no_grad():
        for p in energy.parameters():
            p.grad.add_(p, alpha=1e-3).nan_to_num_()
    optim.step()
    average.update_parameters(energy)
    if step % 10 == 0:
        far = langevin(average, torch.rand(32, 2) * 4 - 2, steps=20)
        print(f"step {step} loss {loss.item():.4f} sample energy {average(far).mean().item():.4f}")
print("trainable", all(p.requires_grad for p in energy.parameters()), "stored graphs", any(r.requires_grad for r in replay))
