import torch
from torch import nn
from centres_fixed import ClassCentres
from sklearn.datasets import load_digits

torch.manual_seed(35)


class PlanktonNet(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, dim))
        self.head = nn.Linear(dim, 10)

    def forward(self, x):
        z = self.body(x)
        return z, self.head(z)


def fit(x, y, steps=48, pull=0.02):
    net = PlanktonNet()
    centres = ClassCentres(net.body, classes=10)
    optim = torch.optim.Adam(net.parameters(), lr=3e-3)
    for step in range(steps):
        if step >= 12 and step % 4 == 0:
            centres.refresh(x[:400], y[:400])
        idx = torch.randint(len(x), (96,))
        z, logits = net(x[idx])
        loss = nn.functional.cross_entropy(logits, y[idx])
        if centres.ready:
            loss = loss + pull * centres.distance(z, y[idx])
        optim.zero_grad()
        loss.backward()
        optim.step()
        if step % 6 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    return net


raw = load_digits()
fit(torch.tensor(raw.data / 16.0, dtype=torch.float32), torch.tensor(raw.target))
