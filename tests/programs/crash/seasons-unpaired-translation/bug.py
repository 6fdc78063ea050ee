import itertools
import torch
from torch import nn
from switches import trainable

torch.manual_seed(19)


def net(n_out):
    return nn.Sequential(nn.Linear(3, 24), nn.LeakyReLU(0.2), nn.Linear(24, n_out))


class Translation:
    def __init__(self):
        self.to_winter, self.to_summer = net(3), net(3)
        self.judge_winter, self.judge_summer = net(1), net(1)
        self.g_opt = torch.optim.Adam(
            itertools.chain(self.to_winter.parameters(), self.to_summer.parameters()), lr=2e-3)
        self.d_opt = torch.optim.Adam(
            itertools.chain(self.judge_winter.parameters(), self.judge_summer.parameters()), lr=2e-3)

    def translators(self, summer, winter):
        trainable([self.judge_winter, self.judge_summer], False)
        self.fake_winter, self.fake_summer = self.to_winter(summer), self.to_summer(winter)
        fool = (self.judge_winter(self.fake_winter) - 1).pow(2).mean()
        fool = fool + (self.judge_summer(self.fake_summer) - 1).pow(2).mean()
        cycle = (self.to_summer(self.fake_winter) - summer).abs().mean()
        cycle = cycle + (self.to_winter(self.fake_summer) - winter).abs().mean()
        loss = fool + 5.0 * cycle
        self.g_opt.zero_grad()
        loss.backward()
        self.g_opt.step()
        return loss.item()

    def judges(self, summer, winter):
        loss = 0.5 * (self.judge_winter(winter) - 1).pow(2).mean()
        loss = loss + 0.5 * self.judge_winter(self.fake_winter.detach()).pow(2).mean()
        loss = loss + 0.5 * (self.judge_summer(summer) - 1).pow(2).mean()
        loss = loss + 0.5 * self.judge_summer(self.fake_summer.detach()).pow(2).mean()
        self.d_opt.zero_grad()
        loss.backward()
        self.d_opt.step()
        return loss.item()


model = Translation()
for step in range(60):
    summer = torch.randn(64, 3) * 0.3 + torch.tensor([1.0, 0.5, 0.0])
    winter = torch.randn(64, 3) * 0.3 - torch.tensor([0.0, 0.5, 1.0])
    g = model.translators(summer, winter)
    if step % 2 == 0:
        d = model.judges(summer, winter)
    if step % 15 == 0:
        print(f"step {step} translators {g:.4f} judges {d:.4f}")
