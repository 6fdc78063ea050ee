import torch
from torch import nn


def sinusoid(length, dim):
    place = torch.arange(length).unsqueeze(1)
    rate = torch.exp(-torch.arange(0, dim, 2) * 9.2 / dim)
    return torch.cat([torch.sin(place * rate), torch.cos(place * rate)], dim=1)


class OrderedEmbedding(nn.Module):
    def __init__(self, vocab, dim, length):
        super().__init__()
        self.token = nn.Embedding(vocab, dim)
        self.project = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, dim))
        self.where = self.project(sinusoid(length, dim))

    def forward(self, tokens):
        return self.token(tokens) + self.where[:tokens.shape[1]]
