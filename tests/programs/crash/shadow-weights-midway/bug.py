import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from shadow import Shadow

torch.manual_seed(27)


def sinc(n):
    x = torch.rand(n, 1) * 8 - 4
    return TensorDataset(x, torch.sinc(x))


@torch.no_grad()
def rmse(model, data):
    x, y = data.tensors
    return (model(x) - y).pow(2).mean().sqrt().item()


def train(micro=4, report_every=6, epochs=3):
    model = nn.Sequential(nn.Linear(1, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1))
    shadow = Shadow(model)
    optim = torch.optim.Adam(model.parameters(), lr=5e-3)
    held = sinc(128)
    pending, seen = 0.0, 0
    for epoch in range(epochs):
        for x, y in DataLoader(sinc(192), batch_size=16):
            pending = pending + nn.functional.mse_loss(model(x), y) / micro
            seen += 1
            if seen % report_every == 0:
                with shadow.applied():
                    print(f"epoch {epoch} seen {seen} rmse {rmse(model, held):.4f}")
            if seen % micro == 0:
                optim.zero_grad()
                pending.backward()
                optim.step()
                shadow.follow()
                print(f"epoch {epoch} seen {seen} loss {float(pending):.4f}")
                pending = 0.0


if __name__ == "__main__":
    train()
