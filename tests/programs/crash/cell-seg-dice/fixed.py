from dataclasses import dataclass, field

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

from losses_fixed import ComboLoss


@dataclass
class TrainConfig:
    epochs: int = 5
    batch_size: int = 8
    lr: float = 1e-2
    image_size: int = 24
    n_images: int = 48
    channels: tuple = field(default_factory=lambda: (8, 16))
    seed: int = 13


class Cells(Dataset):
    def __init__(self, cfg):
        g = torch.Generator().manual_seed(cfg.seed)
        s = cfg.image_size
        yy, xx = torch.meshgrid(torch.arange(s), torch.arange(s), indexing="ij")
        self.items = []
        for _ in range(cfg.n_images):
            mask = torch.zeros(s, s)
            for _ in range(3):
                cy, cx, r = torch.rand(3, generator=g).tolist()
                mask[((yy - cy * s) ** 2 + (xx - cx * s) ** 2) < (2 + 3 * r) ** 2] = 1
            image = 0.7 * mask + 0.3 * torch.randn(s, s, generator=g)
            self.items.append((image[None], mask[None]))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU())


class TinyUNet(nn.Module):
    def __init__(self, channels):
        super().__init__()
        c1, c2 = channels
        self.enc, self.mid = block(1, c1), block(c1, c2)
        self.up = nn.ConvTranspose2d(c2, c1, 2, stride=2)
        self.dec = block(2 * c1, c1)
        self.out = nn.Conv2d(c1, 1, 1)

    def forward(self, x):
        e = self.enc(x)
        m = self.mid(nn.functional.max_pool2d(e, 2))
        return self.out(self.dec(torch.cat([self.up(m), e], 1)))


class Runner:
    def __init__(self, cfg):
        torch.manual_seed(cfg.seed)
        self.cfg = cfg
        self.loader = DataLoader(Cells(cfg), cfg.batch_size, shuffle=True)
        self.model = TinyUNet(cfg.channels)
        self.loss_fn = ComboLoss(warmup_epochs=3)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)

    def iou(self, logits, target):
        p, t = logits > 0, target > 0.5
        return ((p & t).sum() / (p | t).sum().clamp(min=1)).item()

    def fit(self):
        for epoch in range(self.cfg.epochs):
            for image, mask in self.loader:
                logits = self.model(image)
                loss = self.loss_fn(logits, mask, epoch)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            print(f"epoch {epoch} loss {loss.item():.4f} iou {self.iou(logits, mask):.3f}")


if __name__ == "__main__":
    Runner(TrainConfig()).fit()
