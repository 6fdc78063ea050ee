import copy
import warnings
import torch
from torch import nn
from blocks_fixed import DilatedStack

warnings.filterwarnings("ignore", category=FutureWarning)
torch.manual_seed(24)


def tones(n=24, length=128):
    t = torch.arange(length) / 8
    wave = torch.sin(t * (0.6 + torch.rand(n, 1))) + 0.4 * torch.sin(2.1 * t + 3 * torch.rand(n, 1))
    return (wave + 0.05 * torch.randn(n, length)).unsqueeze(1)


class Best:
    """Remembers the model of the epoch with the lowest loss."""

    def __init__(self):
        self.value, self.model = float("inf"), None

    def offer(self, value, model):
        if value < self.value:
            self.value, self.model = value, copy.deepcopy(model)


def next_sample(model, wave):
    return nn.functional.mse_loss(model(wave[..., :-1]), wave[..., 1:])


train, valid = tones(), tones(8)
model, best = DilatedStack(), Best()
optim = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(6):
    model.eval()
    with torch.no_grad():
        held = next_sample(model, valid).item()
    model.train()
    total = 0.0
    for wave in train[torch.randperm(len(train))].split(8):
        loss = next_sample(model, wave)
        optim.zero_grad()
        loss.backward()
        optim.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / 3:.4f} held out before {held:.4f}")
    if epoch >= 2:
        best.offer(total / 3, model)
