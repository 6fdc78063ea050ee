import torch
from torch import nn
from signum_fixed import Signum
from sklearn.datasets import load_wine

torch.manual_seed(5)


def wine():
    raw = load_wine()
    x = torch.tensor(raw.data, dtype=torch.float32)
    return (x - x.mean(0)) / x.std(0), torch.tensor(raw.target)


x, y = wine()
model = nn.Sequential(nn.Linear(13, 24), nn.SiLU(), nn.Linear(24, 3))
decay, plain = [], []
for name, p in model.named_parameters():
    (decay if name.endswith("weight") else plain).append(p)
optim = Signum([{"params": decay, "weight_decay": 0.01}, {"params": plain}], lr=2e-3)

for epoch in range(5):
    order = torch.randperm(len(x))
    for idx in order.split(32):
        loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
        optim.zero_grad()
        loss.backward()
        optim.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
