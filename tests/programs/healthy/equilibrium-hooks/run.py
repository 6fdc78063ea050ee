"""A deep equilibrium layer: fixed point without a graph, implicit gradient through a hook;
the optimizer of each parameter steps inside backward."""
import torch
from torch import nn

torch.manual_seed(71)


class Equilibrium(nn.Module):
    def __init__(self, width, rounds=30, tol=1e-4):
        super().__init__()
        self.rounds, self.tol = rounds, tol
        self.w = nn.Linear(width, width)
        with torch.no_grad():
            self.w.weight.mul_(0.3)
        self.solves = []

    def f(self, z, x):
        return torch.tanh(self.w(z) + x)

    def solve(self, g, z):
        for k in range(self.rounds):
            z, old = g(z), z
            if (z - old).norm() < self.tol * (z.norm() + 1e-9):
                break
        self.solves.append(k + 1)
        return z

    def forward(self, x):
        with torch.no_grad():
            z = self.solve(lambda z: self.f(z, x), torch.zeros_like(x))
        z = self.f(z, x)
        if not z.requires_grad:
            return z
        z0 = z.detach().requires_grad_()
        f0 = self.f(z0, x.detach())
        handle = []

        def implicit(grad):
            handle.pop().remove()
            return self.solve(lambda v: torch.autograd.grad(f0, z0, v, retain_graph=True)[0] + grad, grad)

        handle.append(z.register_hook(implicit))
        return z


class Soften(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad.clamp(-0.05, 0.05)


net = nn.ModuleDict({"inp": nn.Linear(4, 16), "eq": Equilibrium(16), "out": nn.Linear(16, 2)})
opts = {p: torch.optim.Adam([p], lr=5e-3) for p in net.parameters()}


def step_now(p):
    opts[p].step()
    opts[p].zero_grad()


for p in net.parameters():
    p.register_post_accumulate_grad_hook(step_now)

sizes = []
net["eq"].register_full_backward_hook(lambda m, gi, go: sizes.append(go[0].norm().item()))
for it in range(40):
    x = torch.randn(64, 4)
    y = (x[:, 0] * x[:, 1] > 0).long()
    h = net["inp"](x)
    h.retain_grad()
    loss = nn.functional.cross_entropy(net["out"](net["eq"](Soften.apply(h))), y)
    loss.backward()
    if it % 8 == 0:
        with torch.no_grad():
            z = net["eq"](net["inp"](x))
        print(f"it {it} loss {loss.item():.4f} |h.grad| {h.grad.norm():.4f} |g| {sizes[-1]:.4f} rounds {net['eq'].solves[-1]}")
