import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

from layers_fixed import Block, RadialBasis


class EnergyModel(nn.Module):
    def __init__(self, n_species=2, dim=32, depth=2, n_rbf=16):
        super().__init__()
        self.species = nn.Embedding(n_species, dim)
        self.rbf = RadialBasis(n_rbf)
        self.edge = nn.Linear(n_rbf, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.out = nn.Linear(dim, 1)

    def forward(self, z, pos):
        diff = pos[:, :, None] - pos[:, None]
        eye = torch.eye(pos.size(1), dtype=torch.bool)
        dist = (diff.pow(2).sum(-1) + eye.float()).sqrt()
        msg = self.edge(self.rbf(dist)).masked_fill(eye[None, :, :, None], 0.0)
        x = self.species(z) + msg.sum(2)
        for block in self.blocks:
            x = block(x)
        return self.out(x).sum((1, 2))


def lennard_jones(z, pos):
    sigma = 1.0 + 0.2 * (z[:, :, None] + z[:, None]) / 2
    diff = pos[:, :, None] - pos[:, None]
    eye = torch.eye(pos.size(1))
    r = (diff.pow(2).sum(-1) + 100 * eye).sqrt()
    s6 = (sigma / r).clamp(max=1.2) ** 6
    return (0.5 * (s6 ** 2 - s6)).sum((1, 2))


def make_dataset(n, atoms=6):
    grid = torch.stack(torch.meshgrid(*[torch.arange(2.0)] * 3, indexing="ij"), -1).view(-1, 3)[:atoms]
    pos = 1.3 * grid + 0.12 * torch.randn(n, atoms, 3)
    z = torch.randint(0, 2, (n, atoms))
    pos.requires_grad_(True)
    energy = lennard_jones(z, pos)
    forces = -torch.autograd.grad(energy.sum(), pos)[0]
    return z, pos.detach(), energy.detach(), forces


def train(model, data, steps, lr, force_weight, batch=16, tag=""):
    z, pos, energy, forces = data
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    mean, std = energy.mean(), energy.std()
    for step in range(steps):
        idx = torch.randint(0, len(z), (batch,))
        p = pos[idx].clone().requires_grad_(force_weight > 0)
        e = model(z[idx], p) * std + mean
        loss = F.mse_loss(e, energy[idx])
        if force_weight > 0:
            f = -torch.autograd.grad(e.sum(), p, create_graph=True)[0]
            loss = loss + force_weight * F.mse_loss(f, forces[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            print(f"{tag} step {step:3d} loss {loss.item():.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--energy-steps", type=int, default=30)
    parser.add_argument("--force-steps", type=int, default=30)
    parser.add_argument("--force-weight", type=float, default=1.0)
    args = parser.parse_args()

    torch.manual_seed(17)
    data = make_dataset(128)
    model = EnergyModel()
    train(model, data, args.energy_steps, 2e-3, 0.0, tag="energy")
    train(model, data, args.force_steps, 1e-3, args.force_weight, tag="energy+forces")
