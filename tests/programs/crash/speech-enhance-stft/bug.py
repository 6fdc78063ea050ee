import math

import torch
import torch.nn as nn

from stft_loss import MultiResolutionSTFTLoss

SR = 4000


def synth(n, seconds=0.25):
    """Harmonic 'voices' and their noisy versions."""
    t = torch.arange(int(SR * seconds)) / SR
    f0 = 100 + 150 * torch.rand(n, 1)
    clean = sum(torch.sin(2 * math.pi * k * f0 * t) / k for k in (1, 2, 3))
    clean = clean * torch.hann_window(len(t)) / 2
    return clean + 0.2 * torch.randn_like(clean), clean


class ConvDenoiser(nn.Module):
    def __init__(self, channels=12, layers=3):
        super().__init__()
        self.inp = nn.Conv1d(1, channels, 9, padding=4)
        self.body = nn.ModuleList(
            nn.Conv1d(channels, 2 * channels, 3, padding=2 ** i, dilation=2 ** i) for i in range(layers)
        )
        self.res = nn.ModuleList(nn.Conv1d(channels, channels, 1) for _ in range(layers))
        self.out = nn.Conv1d(channels, 1, 1)

    def forward(self, x):
        h = self.inp(x[:, None])
        for conv, res in zip(self.body, self.res):
            a, b = conv(h).chunk(2, 1)
            h = h + res(torch.tanh(a) * torch.sigmoid(b))
        return self.out(h)[:, 0]


def si_snr(est, ref):
    ref = ref - ref.mean(-1, keepdim=True)
    est = est - est.mean(-1, keepdim=True)
    proj = (est * ref).sum(-1, keepdim=True) * ref / ref.pow(2).sum(-1, keepdim=True)
    return (10 * torch.log10(proj.pow(2).sum(-1) / (est - proj).pow(2).sum(-1))).mean()


def train_stage(model, criterion, steps, lr, name):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for step in range(steps):
        noisy, clean = synth(8)
        est = model(noisy)
        loss = criterion(est, clean)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        if step % 10 == 0:
            print(f"[{name}] step {step:3d} loss {loss.item():.4f} si-snr {si_snr(est.detach(), clean).item():.2f} dB")


if __name__ == "__main__":
    torch.manual_seed(8)
    model = ConvDenoiser()
    train_stage(model, MultiResolutionSTFTLoss(), 20, 3e-3, "magnitude")
    train_stage(model, MultiResolutionSTFTLoss(complex_weight=0.5), 20, 1e-3, "phase-aware")
