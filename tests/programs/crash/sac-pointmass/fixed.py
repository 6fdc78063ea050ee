import random
from collections import deque

import torch

from agent_fixed import SAC


class PointMass:
    """2-d point mass that has to get to the origin."""

    obs_dim, act_dim = 4, 2

    def reset(self):
        self.pos, self.vel, self.t = torch.rand(2) * 2 - 1, torch.zeros(2), 0
        return torch.cat([self.pos, self.vel])

    def step(self, a):
        self.vel = 0.9 * self.vel + 0.1 * a
        self.pos = (self.pos + 0.1 * self.vel).clamp(-2, 2)
        self.t += 1
        return torch.cat([self.pos, self.vel]), -self.pos.norm().item(), self.t >= 40


class Replay:
    def __init__(self, size):
        self.data = deque(maxlen=size)

    def push(self, *tr):
        self.data.append(tr)

    def sample(self, n):
        o, a, r, n2, d = zip(*random.sample(self.data, n))
        col = lambda v: torch.tensor(v, dtype=torch.float32)[:, None]
        return torch.stack(o), torch.stack(a), col(r), torch.stack(n2), col(d)


def main(episodes=8, warmup=120, batch=64):
    torch.manual_seed(0)
    random.seed(0)
    env, replay = PointMass(), Replay(5000)
    agent = SAC(env.obs_dim, env.act_dim)
    steps = 0
    for ep in range(episodes):
        obs, done, ret, stats = env.reset(), False, 0.0, None
        while not done:
            if steps < warmup:
                act = torch.rand(env.act_dim) * 2 - 1
            else:
                with torch.no_grad():
                    act, _ = agent.actor.sample(obs)
            nxt, rew, done = env.step(act)
            replay.push(obs, act, rew, nxt, float(done))
            obs, ret, steps = nxt, ret + rew, steps + 1
            if steps > warmup:
                stats = agent.update(*replay.sample(batch))
        print(f"episode {ep} return {ret:.2f}", "" if stats is None else "q %.3f pi %.3f" % stats)


if __name__ == "__main__":
    main()
