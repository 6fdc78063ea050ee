import numpy as np
import torch


class Replay:
    def __init__(self, size, seed):
        self.size, self.items = size, []
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return len(self.items)

    def add(self, *item):
        self.items = self.items[-self.size + 1:] + [item]

    def draw(self, n):
        picked = [self.items[i] for i in self.rng.choice(len(self.items), n, replace=False)]
        state, action, reward, after, done = zip(*picked)
        reward = torch.from_numpy(np.array(reward))
        return torch.stack(state), torch.tensor(action), reward, torch.stack(after), torch.tensor(done).float()
