import torch
import torch.nn as nn
import torch.nn.functional as F


class RadialBasis(nn.Module):
    def __init__(self, n=16, cutoff=4.0):
        super().__init__()
        self.register_buffer("centres", torch.linspace(0.0, cutoff, n))
        self.gamma = (n / cutoff) ** 2
        self.cutoff = cutoff

    def forward(self, d):
        env = 0.5 * (torch.cos(torch.pi * d.clamp(max=self.cutoff) / self.cutoff) + 1)
        return torch.exp(-self.gamma * (d[..., None] - self.centres) ** 2) * env[..., None]


class AtomAttention(nn.Module):
    def __init__(self, dim, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        out = F.scaled_dot_product_attention(q, k, v)
        return self.proj(out.transpose(1, 2).reshape(b, n, c))


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = AtomAttention(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))
