import torch
from torch import nn

from sparse_fixed import SparseLinear

torch.manual_seed(61)


def teacher(n=64):
    x = torch.randn(n, 20)
    return x, torch.sign(x[:, :3].prod(dim=1)).add(1).div(2).long()


class RigL:
    """Drops the smallest weights now and then and grows where the dense gradient is large."""

    def __init__(self, net, every, amount=0.2):
        self.net, self.every, self.amount = net, every, amount
        self.layers = [m for m in net if isinstance(m, SparseLinear)]

    @torch.no_grad()
    def rewire(self):
        for layer in self.layers:
            count = int(self.amount * layer.mask.sum())
            alive = torch.where(layer.mask.bool(), layer.weight.abs(), torch.inf).flatten()
            dead = torch.where(layer.mask.bool(), -1.0, layer.weight.grad.abs()).flatten()
            flat, grown = layer.mask.view(-1), dead.topk(count).indices
            flat[alive.topk(count, largest=False).indices] = 0.0
            flat[grown] = 1.0
            layer.weight.view(-1)[grown] = 0.0


net = nn.Sequential(SparseLinear(20, 20), nn.Tanh(), SparseLinear(20, 20), nn.Tanh(), nn.Linear(20, 2))
wide = nn.Sequential(SparseLinear(20, 40), nn.Tanh(), SparseLinear(40, 2))
for name, model in [("square", net), ("wide", wide)]:
    optim = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    growth = RigL(model, every=5)
    for step in range(20):
        x, y = teacher()
        loss = nn.functional.cross_entropy(model(x), y)
        optim.zero_grad()
        loss.backward()
        if step % growth.every == growth.every - 1:
            growth.rewire()
        optim.step()
        if step % 5 == 0:
            print(f"{name} step {step} loss {loss.item():.4f}")
