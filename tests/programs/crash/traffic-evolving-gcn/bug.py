import argparse

import torch
import torch.nn.functional as F
from torch import nn

from layers import EvolveGCN, gcn_norm


class RecurrentGCN(nn.Module):
    def __init__(self, node_features):
        super().__init__()
        self.recurrent = EvolveGCN(node_features)
        self.linear = nn.Linear(node_features, 1)

    def forward(self, x, adj):
        h = F.relu(self.recurrent(x, adj))
        return self.linear(h).squeeze(-1)


def make_snapshots(num_nodes, features, length, generator):
    """Synthetic sensor network: a ring road plus a few shortcuts."""
    src = torch.arange(num_nodes)
    edge_index = torch.stack([src, (src + 1) % num_nodes])
    extra = torch.randint(0, num_nodes, (2, num_nodes), generator=generator)
    edge_index = torch.cat([edge_index, edge_index.flip(0), extra], 1)
    t = torch.arange(length + features, dtype=torch.float32)
    phase = torch.rand(num_nodes, 1, generator=generator) * 6.28
    speed = torch.sin(0.2 * t[None] + phase) + 0.05 * torch.randn(num_nodes, len(t), generator=generator)
    snaps = []
    for k in range(length):
        w = torch.rand(edge_index.size(1), generator=generator)
        snaps.append((speed[:, k:k + features], gcn_norm(edge_index, w, num_nodes), speed[:, k + features - 1] * 0.9))
    return snaps


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--lags", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--lr", type=float, default=0.01)
    args = parser.parse_args()

    torch.manual_seed(42)
    gen = torch.Generator().manual_seed(0)
    snapshots = make_snapshots(args.nodes, args.lags, 40, gen)
    train, test = snapshots[:32], snapshots[32:]

    model = RecurrentGCN(args.lags)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)

    model.train()
    for epoch in range(args.epochs):
        cost = 0
        for time, (x, adj, y) in enumerate(train):
            y_hat = model(x, adj)
            cost = cost + torch.mean((y_hat - y) ** 2)
        cost = cost / (time + 1)
        optimizer.zero_grad()
        cost.backward()
        optimizer.step()
        print(f"epoch {epoch}  train MSE {cost.item():.4f}")

    model.eval()
    with torch.no_grad():
        err = sum(torch.mean((model(x, a) - y) ** 2) for x, a, y in test) / len(test)
    print("test MSE: {:.4f}".format(err))


if __name__ == "__main__":
    main()
