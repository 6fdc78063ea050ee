import torch


class RolloutStorage:
    """Keeps one rollout and hands out PPO minibatches."""

    def __init__(self, gamma=0.99, lam=0.95):
        self.gamma = gamma
        self.lam = lam
        self.clear()

    def clear(self):
        self.obs, self.actions, self.log_probs = [], [], []
        self.values, self.rewards, self.masks = [], [], []

    def insert(self, obs, action, log_prob, value, reward, done):
        self.obs.append(obs)
        self.actions.append(action.detach())
        self.log_probs.append(log_prob.detach())
        self.values.append(value)
        self.rewards.append(reward)
        self.masks.append(0.0 if done else 1.0)

    def finish(self, last_value):
        gae = 0.0
        values = self.values + [last_value]
        advantages = []
        for t in reversed(range(len(self.rewards))):
            delta = self.rewards[t] + self.gamma * values[t + 1] * self.masks[t] - values[t]
            gae = delta + self.gamma * self.lam * self.masks[t] * gae
            advantages.insert(0, gae)
        self.adv = torch.stack(advantages)
        self.returns = self.adv + torch.stack(self.values)

    def minibatches(self, size):
        obs = torch.stack(self.obs)
        actions = torch.stack(self.actions)
        log_probs = torch.stack(self.log_probs)
        adv = (self.adv - self.adv.mean()) / (self.adv.std() + 1e-8)
        for idx in torch.randperm(len(obs)).split(size):
            yield obs[idx], actions[idx], log_probs[idx], adv[idx], self.returns[idx]
