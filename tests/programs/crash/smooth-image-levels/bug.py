import random

import torch
import torch.nn.functional as F
from torch import nn

from pictures import Augment, bars

random.seed(7)
torch.manual_seed(7)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.fc = nn.Linear(8 * 16, 2)

    def forward(self, x):
        x = F.avg_pool2d(torch.relu(self.conv(x.float())), 2)
        return self.fc(x.flatten(1))


def kl(p_logits, q_logits):
    return F.kl_div(F.log_softmax(q_logits, 1), F.softmax(p_logits, 1), reduction="batchmean")


def worst_direction(net, x, size=0.5, probe=1e-1):
    with torch.no_grad():
        clean = net(x)
    d = F.normalize(torch.randn(x.shape).flatten(1)).view_as(x)
    x = x.clone().requires_grad_(True)
    distance = kl(clean, net(x + probe * d))
    (g,) = torch.autograd.grad(distance, x)
    return size * F.normalize(g.flatten(1)).view_as(g), clean


net, augment = Net(), Augment()
optim = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(40):
    x, y = bars()
    x = augment(x)
    r, clean = worst_direction(net, x)
    loss = F.cross_entropy(net(x), y) + kl(clean, net(x + r))
    optim.zero_grad()
    loss.backward()
    optim.step()
    if step % 2 == 0:
        print(f"step {step} loss {loss.item():.4f}")
