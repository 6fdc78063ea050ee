import torch
from torch import nn
from torch.distributions import Normal

from storage_fixed import Storage

torch.manual_seed(6)


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 32), nn.Tanh())
        self.mean, self.value = nn.Linear(32, 1), nn.Linear(32, 1)
        self.log_std = nn.Parameter(torch.full((1,), -0.5))

    def forward(self, obs):
        h = self.body(obs)
        return Normal(self.mean(h).squeeze(-1), self.log_std.exp()), self.value(h).squeeze(-1)


class SlopeCar:
    def __init__(self, n):
        self.state = torch.randn(n, 2)

    def step(self, push):
        x, v = self.state.unbind(-1)
        v = 0.9 * v + 0.2 * push.clamp(-2, 2) - 0.05 * x
        self.state = torch.stack([x + 0.2 * v, v], dim=-1)
        return -self.state.pow(2).sum(-1)


def main(iterations=6, horizon=16, clip=0.2):
    policy, env = ActorCritic(), SlopeCar(8)
    optim = torch.optim.Adam(policy.parameters(), lr=3e-3)
    for it in range(iterations):
        store = Storage()
        for _ in range(horizon):
            obs = env.state
            with torch.no_grad():
                dist, value = policy(obs)
                push = dist.sample()
                store.add(obs, push, dist.log_prob(push), value, env.step(push))
        print(f"iteration {it} reward {torch.stack(store.reward).mean():.4f}")
        for obs, push, old, ret, adv in store.batches(size=32, passes=3):
            dist, value = policy(obs)
            ratio = (dist.log_prob(push) - old).exp()
            gain = torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv).mean()
            loss = (value - ret).pow(2).mean() - gain
            optim.zero_grad()
            loss.backward()
            optim.step()
        print(f"iteration {it} loss {loss.item():.4f}")


main()
