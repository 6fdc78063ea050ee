import torch.nn as nn


def make_activation(name):
    return {
        "relu": nn.ReLU(inplace=True),
        "silu": nn.SiLU(),
        "none": nn.Identity(),
    }[name]


class SeparableConv(nn.Module):
    def __init__(self, channels, act="relu"):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)
        self.pointwise = nn.Conv2d(channels, channels, 1)
        self.bn = nn.BatchNorm2d(channels, momentum=0.01, eps=1e-3)
        self.act = make_activation(act)

    def forward(self, x):
        return self.act(self.bn(self.pointwise(self.depthwise(x))))


class Backbone(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.stem = nn.Conv2d(1, channels, 3, padding=1)
        self.stages = nn.ModuleList(
            nn.Sequential(nn.Conv2d(channels, channels, 3, stride=2, padding=1), nn.BatchNorm2d(channels), make_activation("relu"))
            for _ in range(3)
        )

    def forward(self, x):
        x = self.stem(x)
        feats = []
        for s in self.stages:
            x = s(x)
            feats.append(x)
        return feats
