import torch
from torch import nn
from torch.distributions import Categorical

from corridor import Corridor
from scaling import RunningScale

torch.manual_seed(17)


class Curiosity(nn.Module):
    def __init__(self, obs, actions):
        super().__init__()
        self.predict = nn.Sequential(nn.Linear(obs + actions, 32), nn.Tanh(), nn.Linear(32, obs))

    def forward(self, obs, action, nxt):
        guess = self.predict(torch.cat([obs, nn.functional.one_hot(action, 2).float()], dim=-1))
        return (guess - nxt).pow(2).mean(dim=-1)


class Agent:
    def __init__(self, env):
        self.env = env
        self.actor, self.critic = nn.Linear(3, 2), nn.Linear(3, 1)
        self.icm = Curiosity(3, 2)
        self.scale = RunningScale()
        params = [*self.actor.parameters(), *self.critic.parameters(), *self.icm.parameters()]
        self.optim = torch.optim.Adam(params, lr=0.01)

    def episode(self, horizon=12, gamma=0.95):
        obs = self.env.reset()
        logp, value, reward, surprise = [], [], [], []
        for _ in range(horizon):
            dist = Categorical(logits=self.actor(obs))
            act = dist.sample()
            nxt, r = self.env.step(int(act))
            bonus = self.icm(obs, act, nxt)
            surprise.append(bonus)
            logp.append(dist.log_prob(act))
            value.append(self.critic(obs).squeeze(-1))
            reward.append(r + 0.2 * self.scale(bonus))
            obs = nxt
        ret, returns = 0.0, []
        for r in reversed(reward):
            ret = r + gamma * ret
            returns.insert(0, ret)
        return torch.stack(logp), torch.stack(value), torch.stack(returns), torch.stack(surprise)

    def learn(self):
        logp, value, returns, surprise = self.episode()
        adv = (returns - value).detach()
        loss = -(adv * logp).mean() + 0.5 * (value - returns).pow(2).mean() + surprise.mean()
        self.optim.zero_grad()
        loss.backward()
        self.optim.step()
        return loss.item(), float(returns[0])


agent = Agent(Corridor())
for ep in range(40):
    loss, ret = agent.learn()
    if ep % 5 == 0:
        print(f"episode {ep} loss {loss:.4f} return {ret:.3f}")
