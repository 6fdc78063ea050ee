from dataclasses import dataclass, field

import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(13)


@dataclass
class Rollout:
    states: list = field(default_factory=list)
    actions: list = field(default_factory=list)
    rewards: list = field(default_factory=list)

    def returns(self, discount=0.95):
        out, total = [], 0.0
        for r in reversed(self.rewards):
            total = r + discount * total
            out.append(total)
        return torch.tensor(out[::-1])


def swing(policy, steps=40):
    angle, speed, path = torch.randn(()) * 0.3, torch.zeros(()), Rollout()
    for _ in range(steps):
        state = torch.stack([angle.sin(), angle.cos(), speed])
        with torch.no_grad():
            push = Normal(policy(state), 0.5).sample().squeeze()
        speed = speed + 0.1 * (angle.sin() + push)
        angle = angle + 0.1 * speed
        path.states.append(state)
        path.actions.append(push)
        path.rewards.append(float(angle.cos() - 0.1 * speed ** 2))
    return path


def improve(policy, value, optims, path):
    states, actions = torch.stack(path.states), torch.stack(path.actions)
    goal = path.returns()
    baseline = value(states).squeeze(-1)
    advantage = goal - baseline.detach()
    log_prob = Normal(policy(states).squeeze(-1), 0.5).log_prob(actions)
    actor_loss = -(log_prob * advantage).mean()
    critic_loss = nn.functional.mse_loss(baseline, goal)
    for optim in optims:
        optim.zero_grad()
    actor_loss.backward()
    critic_loss.backward()
    for optim in optims:
        optim.step()
    return actor_loss.item(), critic_loss.item()


policy = nn.Sequential(nn.Linear(3, 24), nn.Tanh(), nn.Linear(24, 1))
value = nn.Sequential(nn.Linear(3, 24), nn.Tanh(), nn.Linear(24, 1))
optims = [torch.optim.Adam(policy.parameters(), lr=3e-3), torch.optim.Adam(value.parameters(), lr=1e-2)]
for n in range(20):
    actor, critic = improve(policy, value, optims, swing(policy))
    if n % 5 == 0:
        print(f"episode {n} actor {actor:.4f} critic {critic:.4f}")
