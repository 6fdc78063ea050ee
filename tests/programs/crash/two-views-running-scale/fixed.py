import torch
from torch import nn
from torch.nn import functional as F
from standard_fixed import RunningScale
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(43)


class TwoViews(nn.Module):
    def __init__(self, width=12, dim=8):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(width, 32), nn.ReLU(), RunningScale(32), nn.Linear(32, dim), RunningScale(dim))

    def forward(self, a, b):
        return self.encoder(a), self.encoder(b)


def redundancy(za, zb, weight=0.02):
    cross = za.T @ zb / len(za)
    on = (cross.diagonal() - 1).pow(2).sum()
    off = cross.pow(2).sum() - cross.diagonal().pow(2).sum()
    return on + weight * off


def noisy(x):
    return x + 0.2 * torch.randn_like(x)


data = TensorDataset(torch.randn(384, 4) @ torch.randn(4, 12))
model = TwoViews()
optim = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(4):
    for (x,) in DataLoader(data, batch_size=64, shuffle=True):
        loss = redundancy(*model(noisy(x), noisy(x)))
        optim.zero_grad()
        loss.backward()
        optim.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
