import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal


def mlp(i, o, h=32):
    return nn.Sequential(nn.Linear(i, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, o))


class Actor(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.net = mlp(obs_dim, 2 * act_dim)

    def sample(self, obs):
        mu, log_std = self.net(obs).chunk(2, -1)
        dist = Normal(mu, log_std.clamp(-5, 2).exp())
        u = dist.rsample()
        a = torch.tanh(u)
        logp = dist.log_prob(u) - torch.log(1 - a.pow(2) + 1e-6)
        return a, logp.sum(-1, keepdim=True)


class SAC:
    def __init__(self, obs_dim, act_dim, lr=1e-3, gamma=0.98, tau=0.01, alpha=0.1):
        self.actor = Actor(obs_dim, act_dim)
        self.q1, self.q2 = mlp(obs_dim + act_dim, 1), mlp(obs_dim + act_dim, 1)
        self.q1_t, self.q2_t = copy.deepcopy(self.q1), copy.deepcopy(self.q2)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=lr)
        self.q_opt = torch.optim.Adam([*self.q1.parameters(), *self.q2.parameters()], lr=lr)
        self.gamma, self.tau, self.alpha = gamma, tau, alpha

    def q_min(self, obs, act, target=False):
        x = torch.cat([obs, act], -1)
        q1, q2 = (self.q1_t, self.q2_t) if target else (self.q1, self.q2)
        return torch.min(q1(x), q2(x))

    def update(self, obs, act, rew, nxt, done):
        # critic objective
        with torch.no_grad():
            next_act, next_logp = self.actor.sample(nxt)
            target = rew + self.gamma * (1 - done) * (self.q_min(nxt, next_act, True) - self.alpha * next_logp)
        x = torch.cat([obs, act], -1)
        q_loss = F.mse_loss(self.q1(x), target) + F.mse_loss(self.q2(x), target)

        # update networks
        self.q_opt.zero_grad()
        q_loss.backward()
        self.q_opt.step()

        # policy objective
        new_act, logp = self.actor.sample(obs)
        policy_loss = (self.alpha * logp - self.q_min(obs, new_act)).mean()
        self.actor_opt.zero_grad()
        policy_loss.backward()
        self.actor_opt.step()

        with torch.no_grad():
            for net, tgt in ((self.q1, self.q1_t), (self.q2, self.q2_t)):
                for p, pt in zip(net.parameters(), tgt.parameters()):
                    pt.lerp_(p, self.tau)
        return q_loss.item(), policy_loss.item()
