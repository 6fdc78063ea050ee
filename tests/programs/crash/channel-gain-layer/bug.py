import torch
from torch import nn
from gains import ChannelGain
from sklearn.datasets import load_digits

torch.manual_seed(18)


class Classifier(nn.Module):
    def __init__(self, width=48, gains=True):
        super().__init__()
        self.inp = nn.Linear(64, width)
        self.gain = ChannelGain(width) if gains else nn.Identity()
        self.out = nn.Linear(width, 10)

    def forward(self, x):
        return self.out(torch.relu(self.gain(self.inp(x))))


def run(gains, epochs=2):
    raw = load_digits()
    x = torch.tensor(raw.data / 16.0, dtype=torch.float32)
    y = torch.tensor(raw.target)
    model = Classifier(gains=gains)
    optim = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        for idx in torch.randperm(len(x)).split(128):
            loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
            optim.zero_grad()
            loss.backward()
            optim.step()
        print(f"gains {gains} epoch {epoch} loss {loss.item():.4f}")


for gains in (False, True):
    run(gains)
