import torch
from torch import nn
from averaging import WeightAverage
from sklearn.datasets import load_breast_cancer

torch.manual_seed(23)


def tumours():
    raw = load_breast_cancer()
    x = torch.tensor(raw.data, dtype=torch.float32)
    return (x - x.mean(0)) / x.std(0), torch.tensor(raw.target, dtype=torch.float32)


def error(model, x, y):
    with torch.no_grad():
        return nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y).item()


x, y = tumours()
hold_x, hold_y, x, y = x[:100], y[:100], x[100:], y[100:]
model = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))
average = WeightAverage(model, keep=0.9)
optim = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

step = 0
for epoch in range(4):
    for idx in torch.randperm(len(x)).split(64):
        optim.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(x[idx]).squeeze(1), y[idx])
        loss.backward()
        optim.step()
        if step % 12 == 11:
            with average.applied(model):
                print(f"step {step} loss {loss.item():.4f} averaged {error(model, hold_x, hold_y):.4f}")
        average.update(model)
        step += 1
    print(f"epoch {epoch} held out {error(model, hold_x, hold_y):.4f}")
