import random
from collections import deque

import torch
from torch import nn
from torch.distributions import Normal

random.seed(1)
torch.manual_seed(1)


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 32), nn.ReLU(), nn.Linear(32, o))


class SAC:
    def __init__(self, lr=3e-3, target_entropy=-1.0):
        self.actor, self.q = mlp(2, 2), mlp(3, 1)
        self.log_alpha = torch.zeros(1, requires_grad=True)
        self.target_entropy = target_entropy
        self.opts = {k: torch.optim.Adam(p, lr=lr) for k, p in
                     {"actor": self.actor.parameters(), "q": self.q.parameters(), "alpha": [self.log_alpha]}.items()}
        self.memory = deque(maxlen=2000)

    def act(self, s):
        mu, log_std = self.actor(s).chunk(2, -1)
        dist = Normal(mu, log_std.clamp(-4, 1).exp())
        u = dist.rsample()
        a = torch.tanh(u)
        return a, (dist.log_prob(u) - torch.log(1 - a.pow(2) + 1e-6)).sum(-1)

    def descend(self, name, loss):
        self.opts[name].zero_grad()
        loss.backward()
        self.opts[name].step()
        return loss.item()

    def improve(self, rounds):
        for _ in range(rounds):
            alpha = self.log_alpha.exp()
            s, a, r = map(torch.stack, zip(*random.sample(self.memory, 32)))
            q = self.descend("q", (self.q(torch.cat([s, a], -1)).squeeze(-1) - r).pow(2).mean())
            fresh, logp = self.act(s)
            gain = self.q(torch.cat([s, fresh], -1)).squeeze(-1)
            pi = self.descend("actor", (alpha.detach() * logp - gain).mean())
            self.descend("alpha", -(alpha * (logp.detach() + self.target_entropy)).mean())
        return q, pi


agent = SAC()
for step in range(160):
    s = torch.rand(2) * 2 - 1
    with torch.no_grad():
        a, _ = agent.act(s)
    agent.memory.append((s, a, -(a[0] - s[0] * s[1]).pow(2)))
    if step >= 40 and step % 10 == 0:
        q, pi = agent.improve(rounds=1 if step < 80 else 3)
        print(f"step {step} q {q:.4f} pi {pi:.4f} alpha {agent.log_alpha.exp().item():.3f}")
