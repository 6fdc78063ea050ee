"""wav2vec-style encoder with LayerDrop and activation checkpointing, frame classification on toy data."""
import random
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


@dataclass
class EncoderConfig:
    dim: int = 32
    heads: int = 4
    layers: int = 6
    segment: int = 2
    layerdrop: float = 0.1
    dropout: float = 0.1
    use_checkpoint: bool = True


class ConvFrontend(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.conv1 = nn.Conv1d(1, dim, 10, stride=5)
        self.conv2 = nn.Conv1d(dim, dim, 4, stride=4)

    def forward(self, wav):
        x = F.gelu(self.conv1(wav[:, None]))
        return F.gelu(self.conv2(x)).transpose(1, 2)


class Segment(nn.Module):
    """A few transformer layers that are checkpointed together."""

    def __init__(self, cfg):
        super().__init__()
        self.layerdrop = cfg.layerdrop
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(cfg.dim, cfg.heads, 2 * cfg.dim, cfg.dropout, batch_first=True, norm_first=True)
            for _ in range(cfg.segment)
        )

    def forward(self, x):
        for layer in self.layers:
            if self.training and torch.rand(()).item() < self.layerdrop:
                continue
            x = layer(x)
        return x


class SpeechEncoder(nn.Module):
    def __init__(self, cfg, classes):
        super().__init__()
        self.cfg = cfg
        self.frontend = ConvFrontend(cfg.dim)
        self.segments = nn.ModuleList(Segment(cfg) for _ in range(cfg.layers // cfg.segment))
        self.norm = nn.LayerNorm(cfg.dim)
        self.head = nn.Linear(cfg.dim, classes)

    def forward(self, wav):
        x = self.frontend(wav)
        for seg in self.segments:
            if self.training and self.cfg.use_checkpoint:
                x = checkpoint(seg, x, use_reentrant=False)
            else:
                x = seg(x)
        return self.head(self.norm(x).mean(1))


def tones(n, classes, length=640):
    y = torch.randint(0, classes, (n,))
    t = torch.arange(length) / length
    phase = 6.28 * torch.rand(n, 1)
    wav = torch.sin(6.28 * (8 + 6 * y[:, None]) * t + phase) + 0.3 * torch.randn(n, length)
    return wav, y


def main():
    random.seed(29)
    torch.manual_seed(1234)
    classes = 4
    model = SpeechEncoder(EncoderConfig(), classes)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    lr = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 10))
    for step in range(16):
        wav, y = tones(16, classes)
        logits = model(wav)
        loss = F.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lr.step()
        if step % 2 == 0:
            print(f"step {step} loss {loss.item():.3f} acc {(logits.argmax(-1) == y).float().mean().item():.2f}", flush=True)
    model.eval()
    with torch.no_grad():
        wav, y = tones(64, classes)
        print("eval acc %.2f" % (model(wav).argmax(-1) == y).float().mean().item())


if __name__ == "__main__":
    main()
