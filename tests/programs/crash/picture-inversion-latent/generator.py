import torch
from torch import nn


class Mapping(nn.Sequential):
    def __init__(self, dim=16):
        super().__init__(nn.Linear(dim, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2))


class Synthesis(nn.Module):
    def __init__(self, channels=8):
        super().__init__()
        self.constant = nn.Parameter(torch.randn(1, channels, 4, 4))
        self.scale = nn.ModuleList(nn.Linear(32, channels) for _ in range(2))
        self.conv = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))
        self.paint = nn.Conv2d(channels, 1, 1)

    def forward(self, style):
        h = self.constant
        for scale, conv in zip(self.scale, self.conv):
            h = nn.functional.interpolate(h, scale_factor=2) * (1 + scale(style))[:, :, None, None]
            h = torch.tanh(conv(h))
        return self.paint(h)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.mapping, self.synthesis = Mapping(), Synthesis()

    def forward(self, seed):
        return self.synthesis(self.mapping(seed))
