import itertools

import torch
from torch import nn

from album_fixed import Album

torch.manual_seed(31)


def translator():
    return nn.Sequential(nn.Linear(6, 24), nn.LeakyReLU(0.2), nn.Linear(24, 6), nn.Tanh())


def judge():
    return nn.Sequential(nn.Linear(6, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))


class Cycle:
    def __init__(self):
        self.a2b, self.b2a = translator(), translator()
        self.judge_a, self.judge_b = judge(), judge()
        self.album_a, self.album_b = Album(48), Album(48)
        g = itertools.chain(self.a2b.parameters(), self.b2a.parameters())
        d = itertools.chain(self.judge_a.parameters(), self.judge_b.parameters())
        self.opt_g = torch.optim.Adam(g, lr=2e-3, betas=(0.5, 0.999))
        self.opt_d = torch.optim.Adam(d, lr=2e-3, betas=(0.5, 0.999))

    def judge_loss(self, net, real, fake):
        return 0.5 * ((net(real) - 1).pow(2).mean() + net(fake).pow(2).mean())

    def optimize(self, a, b):
        fake_b, fake_a = self.a2b(a), self.b2a(b)
        cycle = (self.b2a(fake_b) - a).abs().mean() + (self.a2b(fake_a) - b).abs().mean()
        fool = (self.judge_b(fake_b) - 1).pow(2).mean() + (self.judge_a(fake_a) - 1).pow(2).mean()
        g_loss = fool + 5 * cycle
        self.opt_g.zero_grad()
        g_loss.backward()
        self.opt_g.step()

        d_loss = self.judge_loss(self.judge_a, a, self.album_a.query(fake_a))
        d_loss = d_loss + self.judge_loss(self.judge_b, b, self.album_b.query(fake_b))
        self.opt_d.zero_grad()
        d_loss.backward()
        self.opt_d.step()
        return g_loss.item(), d_loss.item()


model = Cycle()
for it in range(30):
    a = torch.rand(8, 6) * torch.tensor([1.0, 1, 1, 0.2, 0.2, 0.2])
    b = -torch.rand(8, 6) * torch.tensor([0.2, 0.2, 0.2, 1, 1, 1])
    g, d = model.optimize(a, b)
    if it % 2 == 0:
        print(f"iter {it:3d} G {g:.4f} D {d:.4f}")
