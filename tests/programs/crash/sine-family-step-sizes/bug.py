import torch
from torch import nn
from torch.func import functional_call
from inner import adapt

torch.manual_seed(29)


def family(n=10):
    height, phase = 0.5 + 2 * torch.rand(()), 3.1 * torch.rand(())

    def draw():
        x = 10 * torch.rand(n, 1) - 5
        return x, height * torch.sin(x + phase)

    return draw(), draw()


class MetaLearner:
    def __init__(self, net, rate=0.02):
        self.net = net
        self.start = {k: p.detach().clone().requires_grad_() for k, p in net.named_parameters()}
        self.rates = {k: torch.full_like(p, rate).requires_grad_() for k, p in self.start.items()}
        self.optim = torch.optim.Adam([*self.start.values(), *self.rates.values()], lr=2e-3)

    def loss(self, weights, x, y):
        return nn.functional.mse_loss(functional_call(self.net, weights, (x,)), y)

    def outer(self, families):
        total = 0.0
        for support, query in families:
            weights = adapt(self.loss, self.start, self.rates, support)
            total = total + self.loss(weights, *query) / len(families)
        self.optim.zero_grad()
        wanted = [*self.start.values(), *self.rates.values()]
        for p, g in zip(wanted, torch.autograd.grad(total, wanted)):
            p.grad = g
        self.optim.step()
        return total.item()


learner = MetaLearner(nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1)))
for step in range(40):
    value = learner.outer([family() for _ in range(4)])
    if step % 10 == 0:
        print(f"step {step} query loss {value:.4f}")
