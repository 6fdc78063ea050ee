import torch
from torch import nn
from alignment import soft_alignment

torch.manual_seed(25)


def gesture(kind, length):
    t = torch.linspace(0, 1, length).pow(0.7 + 0.6 * torch.rand(()))
    path = torch.stack([torch.sin(6.3 * t * (1 + kind)), torch.cos(6.3 * t), t], dim=1)
    return path + 0.1 * torch.randn_like(path)


class Encoder(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.conv = nn.Conv1d(3, 12, 3, padding=1)
        self.out = nn.Linear(12, dim)

    def forward(self, path):
        h = torch.relu(self.conv(path.T.unsqueeze(0)))[0].T
        return self.out(h)


def pair_loss(encoder, anchor, near, far, margin=2.0):
    a, p, n = (encoder(x) for x in (anchor, near, far))
    return torch.relu(soft_alignment(a, p) - soft_alignment(a, n) + margin)


encoder = Encoder()
optim = torch.optim.Adam(encoder.parameters(), lr=5e-3)
for step in range(25):
    kind = step % 2
    loss = pair_loss(encoder, gesture(kind, 10), gesture(kind, 12), gesture(1 - kind, 11))
    optim.zero_grad()
    loss.backward()
    optim.step()
    if step % 5 == 0:
        print(f"step {step} loss {loss.item():.4f}")
