import torch
import torch.nn.functional as F
from torch import nn

from resample import Soften

torch.manual_seed(50)


class Discriminator(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.soften = Soften(width)
        self.body = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.score = nn.Linear(width * 16, 1)

    def forward(self, img):
        h = F.softplus(self.stem(img))
        h = F.softplus(self.body(self.soften(h)))
        return self.score(h.flatten(1)).squeeze(1)


def blobs(n=24):
    grid = torch.linspace(-1, 1, 8)
    cx, cy = torch.rand(2, n, 1, 1) - 0.5
    return torch.exp(-6 * ((grid.view(1, 1, 8) - cx) ** 2 + (grid.view(1, 8, 1) - cy) ** 2)).unsqueeze(1)


class Game:
    def __init__(self, lazy=8, gamma=1.0):
        self.lazy, self.gamma = lazy, gamma
        self.disc = Discriminator()
        self.gen = nn.Sequential(nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 64), nn.Sigmoid(), nn.Unflatten(1, (1, 8, 8)))
        self.opt_d = torch.optim.Adam(self.disc.parameters(), lr=2e-3, betas=(0.0, 0.99))
        self.opt_g = torch.optim.Adam(self.gen.parameters(), lr=2e-3, betas=(0.0, 0.99))

    def discriminate(self, step):
        real, fake = blobs(), self.gen(torch.randn(24, 6)).detach()
        loss = F.softplus(-self.disc(real)).mean() + F.softplus(self.disc(fake)).mean()
        if step % self.lazy == self.lazy - 1:
            real.requires_grad_(True)
            (slope,) = torch.autograd.grad(self.disc(real).sum(), real, create_graph=True)
            loss = loss + 0.5 * self.gamma * self.lazy * slope.pow(2).sum((1, 2, 3)).mean()
        self.opt_d.zero_grad()
        loss.backward()
        self.opt_d.step()
        return loss.item()

    def generate(self):
        loss = F.softplus(-self.disc(self.gen(torch.randn(24, 6)))).mean()
        self.opt_g.zero_grad()
        loss.backward()
        self.opt_g.step()
        return loss.item()


game = Game()
for step in range(24):
    d, g = game.discriminate(step), game.generate()
    if step % 3 == 0:
        print(f"step {step} D loss {d:.4f} G loss {g:.4f}")
