import torch
from torch import nn
from activation import LeanSwish

torch.manual_seed(48)


def critic(width=24):
    return nn.Sequential(nn.Linear(6, width), LeanSwish(), nn.Linear(width, width), LeanSwish(), nn.Linear(width, 1))


class Textures:
    def __init__(self, penalty=10.0, penalty_every=4):
        self.maker = nn.Sequential(nn.Linear(3, 24), LeanSwish(), nn.Linear(24, 6))
        self.critic = critic()
        self.maker_opt = torch.optim.Adam(self.maker.parameters(), lr=1e-3, betas=(0.5, 0.9))
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=1e-3, betas=(0.5, 0.9))
        self.weight, self.every, self.count = penalty, penalty_every, 0

    def slope(self, real, fake):
        mix = torch.rand(len(real), 1)
        point = (mix * real + (1 - mix) * fake).requires_grad_(True)
        grad, = torch.autograd.grad(self.critic(point).sum(), point, create_graph=True)
        return (grad.norm(dim=1) - 1).pow(2).mean()

    def critic_step(self, real):
        self.count += 1
        fake = self.maker(torch.randn(len(real), 3)).detach()
        loss = self.critic(fake).mean() - self.critic(real).mean()
        if self.count % self.every == 0:
            loss = loss + self.weight * self.slope(real, fake)
        self.critic_opt.zero_grad()
        loss.backward()
        self.critic_opt.step()
        return loss.item()

    def maker_step(self, n):
        loss = -self.critic(self.maker(torch.randn(n, 3))).mean()
        self.maker_opt.zero_grad()
        loss.backward()
        self.maker_opt.step()
        return loss.item()


game = Textures()
for step in range(24):
    real = torch.randn(64, 6) * torch.tensor([1.0, 0.5, 2.0, 1.0, 0.2, 1.5]) + 0.5
    c, m = game.critic_step(real), game.maker_step(64)
    if step % 3 == 0:
        print(f"step {step} critic {c:.4f} maker {m:.4f}")
