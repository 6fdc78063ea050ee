import torch
from torch import nn
from functools import partial
from focal import focal_loss

torch.manual_seed(46)


def defects(n=500):
    x = torch.randn(n, 6)
    kind = (x[:, 0] > 0.4).long() + (x[:, 0] + x[:, 1] > 2.0).long()
    return x, kind


def inverse_frequency(kind, classes=3):
    count = torch.bincount(kind, minlength=classes).float()
    return count.sum() / (classes * count.clamp(min=1))


class Inspector:
    def __init__(self, classes=3):
        self.net = nn.Sequential(nn.Linear(6, 20), nn.ReLU(), nn.Linear(20, classes))
        self.optim = torch.optim.Adam(self.net.parameters(), lr=1e-2)
        self.criterion = focal_loss

    def rebalance(self, kind):
        self.criterion = partial(focal_loss, weight=inverse_frequency(kind))

    def epoch(self, x, kind):
        for idx in torch.randperm(len(x)).split(100):
            loss = self.criterion(self.net(x[idx]), kind[idx])
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()
        return loss.mean().item()


x, kind = defects()
inspector = Inspector()
for e in range(5):
    if e == 2:
        inspector.rebalance(kind)
    print(f"epoch {e} loss {inspector.epoch(x, kind):.4f}")
