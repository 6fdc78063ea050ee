import math
import torch
from torch import nn

torch.manual_seed(17)


class Critic(nn.Module):
    """Scores pairs (signal, code); used for a lower bound of their information."""

    def __init__(self, hidden=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, hidden), nn.ELU(), nn.Linear(hidden, 1))

    def forward(self, a, b):
        return self.net(torch.cat([a, b], dim=1)).squeeze(1)

    def bound(self, a, b):
        joint = self(a, b).mean()
        apart = self(a, b[torch.randperm(len(b))]).logsumexp(0) - math.log(len(b))
        return joint - apart


class InfoMax:
    def __init__(self):
        self.encoder = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2), nn.Tanh())
        self.critic = Critic()
        self.encoder_opt = torch.optim.Adam(self.encoder.parameters(), lr=1e-3)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=5e-3)

    def update(self, x):
        code = self.encoder(x + 0.1 * torch.randn_like(x))
        encoder_loss = -self.critic.bound(x, code)
        critic_loss = -self.critic.bound(x, code.detach())

        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()

        self.encoder_opt.zero_grad()
        encoder_loss.backward()
        self.encoder_opt.step()
        return -critic_loss.item()


agent = InfoMax()
for step in range(60):
    value = agent.update(torch.randn(128, 2))
    if step % 15 == 0:
        print(f"step {step} bound {value:.4f}")
