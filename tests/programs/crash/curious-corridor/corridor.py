import torch


class Corridor:
    def __init__(self, length=6):
        self.length = length

    def reset(self):
        self.at, self.clock = 0, 0
        return self.observe()

    def observe(self):
        return torch.tensor([self.at / self.length, self.clock / 12, 1.0])

    def step(self, action):
        self.at = max(0, min(self.length, self.at + (1 if action else -1)))
        self.clock += 1
        return self.observe(), float(self.at == self.length)
