import torch
import torch.nn as nn
import torch.nn.functional as F

from blocks import SeparableConv, make_activation


class FuseFeature(nn.Module):
    """Fast normalised fusion of n feature maps."""

    def __init__(self, n_inputs, channels, eps=1e-4):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(n_inputs))
        self.act = make_activation("relu")
        self.conv = SeparableConv(channels)

    def forward(self, *features):
        w = self.act(self.weight)
        w = w / (w.sum() + self.eps)
        return self.conv(sum(wi * f for wi, f in zip(w, features)))


class BiFPNLayer(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.p4_td = FuseFeature(2, channels)
        self.p3_out = FuseFeature(2, channels)
        self.p4_out = FuseFeature(3, channels)
        self.p5_out = FuseFeature(2, channels)

    def forward(self, p3, p4, p5):
        up = lambda t: F.interpolate(t, scale_factor=2, mode="nearest")
        down = lambda t: F.max_pool2d(t, 2)
        p4_td = self.p4_td(p4, up(p5))
        p3_out = self.p3_out(p3, up(p4_td))
        p4_out = self.p4_out(p4, p4_td, down(p3_out))
        p5_out = self.p5_out(p5, down(p4_out))
        return p3_out, p4_out, p5_out
