"""Models that differ in the layers of their trunk."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations

from tests.engine.models.common import (
    ROWS,
    WIDTH,
    Build,
    Heads,
    Losses,
    Model,
    batch,
    mlp,
    of_trunk,
)


class Tokens(nn.Module):
    """Mean of the embedded tokens."""

    def __init__(self, *, sparse: bool) -> None:
        super().__init__()
        self.table = nn.Embedding(9, WIDTH, sparse=sparse)

    def forward(self, tokens: Tensor) -> Tensor:
        found: Tensor = self.table(tokens)
        return found.mean(dim=1)


class LastState(nn.Module):
    """The last output of a recurrent layer, read both ways."""

    def __init__(self, kind: type[nn.LSTM | nn.GRU]) -> None:
        super().__init__()
        self.layer = kind(3, WIDTH, num_layers=2, batch_first=True)

    def forward(self, sequence: Tensor) -> Tensor:
        output: Tensor = self.layer(sequence)[0]
        return output[:, -1]


class Attended(nn.Module):
    """Self-attention, then the mean over positions."""

    def __init__(self, *, need_weights: bool) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 2, dropout=0.2, batch_first=True)
        self.need_weights = need_weights

    def forward(self, x: Tensor) -> Tensor:
        attended: Tensor = self.attention(x, x, x, need_weights=self.need_weights)[0]
        return attended.mean(dim=1)


class Pooled(nn.Module):
    """A layer on sequences, then the mean over positions."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.layer(x)
        return made.mean(dim=1)


class MMoE(nn.Module):
    """Three experts, one softmax gate per task (Ma et al., KDD 2018)."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(5, WIDTH) for _ in range(3))
        self.gates = nn.ModuleList(nn.Linear(5, 3) for _ in range(3))

    def forward(self, x: Tensor) -> list[Tensor]:
        made = torch.stack([expert(x).relu() for expert in self.experts])  # [expert, row, width]
        return [torch.einsum("re,erw->rw", gate(x).softmax(dim=-1), made) for gate in self.gates]


def mmoe() -> Model:
    experts, heads, x = MMoE(), Heads(), batch()
    return Model(nn.ModuleList([experts, heads]), lambda: heads(experts(x)))


def tied_weights() -> Model:
    table, decoder, heads = nn.Embedding(9, WIDTH), nn.Linear(WIDTH, 9, bias=False), Heads()
    decoder.weight = table.weight
    tokens = torch.randint(9, (ROWS,))

    def losses() -> Losses:
        features = table(tokens).tanh()
        return heads(features) | {"words": F.cross_entropy(decoder(features), tokens)}

    return Model(nn.ModuleList([table, decoder, heads]), losses)


def module_twice() -> Model:
    layer, first, heads, x = nn.Linear(WIDTH, WIDTH), nn.Linear(5, WIDTH), Heads(), batch()
    return Model(
        nn.ModuleList([layer, first, heads]),
        lambda: heads(layer(torch.tanh(layer(first(x))))),
    )


def functional_weight() -> Model:
    weight, heads, x = nn.Linear(5, WIDTH, bias=False), Heads(), batch()

    def losses() -> Losses:
        normed = weight.weight / weight.weight.norm(dim=1, keepdim=True)
        return heads(F.linear(x, normed) + F.linear(x, weight.weight * 2))

    return Model(nn.ModuleList([weight, heads]), losses)


def inplace_at_border() -> Model:
    trunk, heads, x = mlp(nn.Tanh()), Heads(), batch()

    def losses() -> Losses:
        features = trunk(x)
        features += 1
        features.mul_(2).tanh_()
        return heads(features)

    return Model(nn.ModuleList([trunk, heads]), losses)


def conv_batch_norm() -> Model:
    layers = (nn.Conv2d(2, WIDTH, 3, bias=False), nn.BatchNorm2d(WIDTH), nn.ReLU(inplace=True))
    pool = (nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return of_trunk(nn.Sequential(*layers, *pool), torch.randn(ROWS, 2, 5, 5))


def transformer() -> Model:
    layer = nn.TransformerEncoderLayer(WIDTH, 2, dim_feedforward=6, batch_first=True)
    return of_trunk(Pooled(layer), torch.randn(ROWS, 3, WIDTH))


MODELS: dict[str, Build] = {
    "tied weights": tied_weights,
    "module called twice": module_twice,
    "functional use of a weight": functional_weight,
    "in-place activations": lambda: of_trunk(
        mlp(nn.ReLU(inplace=True), nn.Linear(WIDTH, WIDTH), nn.ELU(inplace=True)), batch()
    ),
    "in-place at the border": inplace_at_border,
    "batch norm": lambda: of_trunk(mlp(nn.BatchNorm1d(WIDTH), nn.ReLU()), batch()),
    "convolution and batch norm": conv_batch_norm,
    "dropout": lambda: of_trunk(mlp(nn.Dropout(0.3)), batch()),
    "weight norm": lambda: of_trunk(
        mlp(parametrizations.weight_norm(nn.Linear(WIDTH, WIDTH)), nn.Tanh()), batch()
    ),
    "embedding, dense": lambda: of_trunk(Tokens(sparse=False), torch.randint(9, (ROWS, 3))),
    "embedding, sparse": lambda: of_trunk(Tokens(sparse=True), torch.randint(9, (ROWS, 3))),
    "LSTM": lambda: of_trunk(LastState(nn.LSTM), torch.randn(ROWS, 3, 3)),
    "GRU": lambda: of_trunk(LastState(nn.GRU), torch.randn(ROWS, 3, 3)),
    "attention": lambda: of_trunk(Attended(need_weights=True), torch.randn(ROWS, 3, WIDTH)),
    "attention, fused": lambda: of_trunk(Attended(need_weights=False), torch.randn(ROWS, 3, WIDTH)),
    "transformer layer": transformer,
    "MMoE": mmoe,
}
