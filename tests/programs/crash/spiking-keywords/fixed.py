"""Spiking keyword spotter on synthetic filterbank features."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from snn_fixed import LIF, reset_net

torch.manual_seed(3)
N_MEL, STEPS, CLASSES = 20, 25, 4


def synth_keywords(n):
    y = torch.randint(0, CLASSES, (n,))
    t = torch.linspace(0, 1, STEPS)[None, :, None]
    f = torch.arange(N_MEL)[None, None, :].float()
    centre = 4.0 * y[:, None, None] + 3 + 3 * torch.sin(6.28 * t + y[:, None, None])
    x = torch.exp(-((f - centre) ** 2) / 6.0) + 0.1 * torch.rand(n, STEPS, N_MEL)
    return x, y


class SpikingKWS(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.fc1 = nn.Linear(N_MEL, hidden)
        self.lif1 = LIF()
        self.fc2 = nn.Linear(hidden, hidden)
        self.lif2 = LIF()
        self.readout = nn.Linear(hidden, CLASSES)

    def forward(self, x):
        x = x.transpose(0, 1)
        x = self.lif1(self.fc1(x))
        x = self.lif2(self.fc2(x))
        return self.readout(x.mean(0))


def run_epoch(net, loader, opt=None):
    hits = total = 0
    for step, (x, y) in enumerate(loader):
        reset_net(net)
        logits = net(x)
        if opt is not None:
            loss = F.cross_entropy(logits, y)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            if step % 4 == 0:
                print(f"  step {step:3d}  loss {loss.item():.3f}")
        hits += (logits.argmax(-1) == y).sum().item()
        total += len(y)
    return hits / total


x, y = synth_keywords(512)
train_loader = DataLoader(TensorDataset(x[:384], y[:384]), batch_size=32, shuffle=True, drop_last=True)
val_loader = DataLoader(TensorDataset(x[384:], y[384:]), batch_size=32)

net = SpikingKWS()
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
for epoch in range(3):
    acc = run_epoch(net, train_loader, optimizer)
    with torch.no_grad():
        val = run_epoch(net, val_loader)
    print(f"epoch {epoch}: train acc {acc:.3f}  val acc {val:.3f}")
