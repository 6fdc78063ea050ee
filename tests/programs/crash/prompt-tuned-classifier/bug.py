from functools import partial

import torch
from torch import nn
from torch.nn import functional as F
from sklearn.datasets import load_digits

torch.manual_seed(14)


class TextTower(nn.Module):
    """Stands for a frozen pretrained text encoder."""

    def __init__(self, dim=32):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(dim, 4, 48, dropout=0.0, batch_first=True)
        self.proj = nn.Linear(dim, dim)

    def forward(self, words):
        return F.normalize(self.proj(self.layer(words)[:, -1]), dim=-1)


class Prompt(nn.Module):
    def __init__(self, classes, dim=32, length=4):
        super().__init__()
        self.context = nn.Parameter(0.02 * torch.randn(classes, length, dim))
        self.register_buffer("names", torch.randn(classes, 1, dim))

    def forward(self):
        return torch.cat([self.context, self.names], dim=1)


def match(image_vectors, class_vectors, scale=8.0):
    return scale * image_vectors @ class_vectors.T


raw = load_digits()
pixels = torch.tensor(raw.data[:600] / 16.0, dtype=torch.float32)
label = torch.tensor(raw.target[:600])
text = TextTower().requires_grad_(False)
image = nn.Linear(64, 32).requires_grad_(False)
prompt = Prompt(10)
optim = torch.optim.Adam(prompt.parameters(), lr=2e-2)
features = F.normalize(image(pixels - pixels.mean(0)), dim=-1)
score = partial(match, class_vectors=text(prompt()))

for epoch in range(4):
    for idx in torch.randperm(len(features)).split(100):
        loss = F.cross_entropy(score(features[idx]), label[idx])
        optim.zero_grad()
        loss.backward()
        optim.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
