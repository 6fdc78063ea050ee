import torch
from torch import nn

torch.manual_seed(28)
TARGETS = {"temperature": nn.MSELoss(), "pressure": nn.SmoothL1Loss(), "rain": nn.BCEWithLogitsLoss()}


class Station(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, width), nn.GELU(), nn.Linear(width, width), nn.GELU())
        self.heads = nn.ModuleDict({name: nn.Linear(width, 1) for name in TARGETS})

    def forward(self, x):
        h = self.trunk(x)
        return {name: head(h).squeeze(-1) for name, head in self.heads.items()}

    def losses(self, x, truth):
        guess = self(x)
        return (criterion(guess[name], truth[name]) for name, criterion in TARGETS.items())


def days(n=400):
    x = torch.randn(n, 8)
    truth = {"temperature": x[:, :3].sum(1), "pressure": x[:, 3] * x[:, 4],
             "rain": (x[:, 5] > x[:, 6]).float()}
    return x, truth


x, truth = days()
model = Station()
optim = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(3):
    total = 0.0
    for idx in torch.randperm(len(x)).split(50):
        optim.zero_grad()
        loss = sum(model.losses(x[idx], {k: v[idx] for k, v in truth.items()}))
        loss.backward()
        total += loss.item()
        optim.step()
    print(f"epoch {epoch} loss {total / 8:.4f}")
