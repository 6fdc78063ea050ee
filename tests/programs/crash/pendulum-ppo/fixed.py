import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.distributions import Normal

from storage_fixed import RolloutStorage


@dataclass
class Config:
    horizon: int = 128
    updates: int = 4
    ppo_epochs: int = 4
    minibatch: int = 32
    clip: float = 0.2
    vf_coef: float = 0.5
    ent_coef: float = 0.003
    lr: float = 3e-4
    seed: int = 1


class Pendulum:
    """Minimal swing-up, no gym needed."""

    def reset(self):
        self.th, self.thdot, self.n = math.pi * (torch.rand(1).item() * 2 - 1), 0.0, 0
        return self._obs()

    def _obs(self):
        return torch.tensor([math.cos(self.th), math.sin(self.th), self.thdot / 8])

    def step(self, u):
        u = max(-2.0, min(2.0, float(u)))
        cost = ((self.th + math.pi) % (2 * math.pi) - math.pi) ** 2 + 0.1 * self.thdot ** 2 + 0.001 * u ** 2
        self.thdot = max(-8, min(8, self.thdot + (15 * math.sin(self.th) + 3 * u) * 0.05))
        self.th += self.thdot * 0.05
        self.n += 1
        return self._obs(), -cost / 8.0, self.n >= 64


class ActorCritic(nn.Module):
    def __init__(self, obs_dim=3, act_dim=1, hidden=32):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, act_dim))
        self.v = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        self.log_std = nn.Parameter(torch.zeros(act_dim))

    def dist(self, obs):
        return Normal(self.pi(obs), self.log_std.exp())

    def act(self, obs):
        d = self.dist(obs)
        a = d.sample()
        return a, d.log_prob(a).sum(-1), self.v(obs).squeeze(-1)

    def evaluate(self, obs, actions):
        d = self.dist(obs)
        return d.log_prob(actions).sum(-1), self.v(obs).squeeze(-1), d.entropy().sum(-1)


def ppo_update(policy, optimizer, storage, cfg):
    for _ in range(cfg.ppo_epochs):
        for obs, act, old_logp, adv, ret in storage.minibatches(cfg.minibatch):
            logp, value, entropy = policy.evaluate(obs, act)
            ratio = (logp - old_logp).exp()
            surr = torch.min(ratio * adv, ratio.clamp(1 - cfg.clip, 1 + cfg.clip) * adv)
            value_loss = (ret - value).pow(2).mean()
            loss = -surr.mean() + cfg.vf_coef * value_loss - cfg.ent_coef * entropy.mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            optimizer.step()
    return value_loss.item()


def main(cfg):
    torch.manual_seed(cfg.seed)
    env, policy, storage = Pendulum(), ActorCritic(), RolloutStorage()
    optimizer = torch.optim.Adam(policy.parameters(), lr=cfg.lr)
    obs = env.reset()
    for update in range(cfg.updates):
        storage.clear()
        for _ in range(cfg.horizon):
            action, logp, value = policy.act(obs)
            nxt, reward, done = env.step(action.item())
            storage.insert(obs, action, logp, value, reward, done)
            obs = env.reset() if done else nxt
        with torch.no_grad():
            last = policy.v(obs).squeeze(-1)
        storage.finish(last)
        print(f"update {update}: mean reward {sum(storage.rewards) / cfg.horizon:.3f}")
        print(f"          value loss {ppo_update(policy, optimizer, storage, cfg):.3f}")


if __name__ == "__main__":
    main(Config())
