import torch


class Storage:
    def __init__(self):
        self.obs, self.push, self.logp, self.value, self.reward = [], [], [], [], []

    def add(self, obs, push, logp, value, reward):
        for column, item in zip((self.obs, self.push, self.logp, self.value, self.reward),
                                (obs, push, logp, value, reward)):
            column.append(item)

    def advantages(self, gamma=0.95, lam=0.9):
        value = torch.stack([*self.value, self.value[-1]])
        run, out = 0.0, []
        for t in reversed(range(len(self.reward))):
            run = self.reward[t] + gamma * value[t + 1] - value[t] + gamma * lam * run
            out.insert(0, run)
        return torch.stack(out)

    def batches(self, size, passes):
        """Shuffled minibatches, several times over the rollout."""
        with torch.no_grad():
            adv = self.advantages()
            ret = adv + torch.stack(self.value)
            adv = (adv - adv.mean()) / (adv.std() + 1e-6)
            columns = [torch.stack(self.obs), torch.stack(self.push), torch.stack(self.logp), ret, adv]
            columns = [c.flatten(0, 1) for c in columns]
            for _ in range(passes):
                for idx in torch.randperm(len(columns[0])).split(size):
                    yield [c[idx] for c in columns]
