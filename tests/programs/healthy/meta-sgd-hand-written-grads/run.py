import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(52)
net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
rate = {n: torch.full_like(p, 0.05).requires_grad_() for n, p in net.named_parameters()}
velocity = {}


def sine_task():
    amp, phase = 1 + 2 * torch.rand(()), 3 * torch.rand(())
    draw = lambda n: (lambda x: (x, amp * torch.sin(x + phase)))(torch.rand(n, 1) * 6 - 3)
    return draw(10), draw(20)


def mse(params, data):
    x, y = data
    return (functional_call(net, params, (x,)) - y).pow(2).mean()


def adapt(data, steps=2, second_order=True):
    fast = dict(net.named_parameters())
    for _ in range(steps):
        grads = torch.autograd.grad(mse(fast, data), list(fast.values()), create_graph=second_order)
        fast = {n: p - rate[n] * g for (n, p), g in zip(fast.items(), grads)}
    return fast


def descend(params, lr=0.02, keep=0.9):
    """Momentum written by hand, in place, outside of the graph."""
    with torch.no_grad():
        for n, p in params.items():
            v = velocity.setdefault(n, torch.zeros_like(p))
            v.mul_(keep).add_(p.grad)
            p.sub_(lr * v)
            p.grad = None


everything = {**{f"net.{n}": p for n, p in net.named_parameters()}, **{f"rate.{n}": r for n, r in rate.items()}}
for it in range(30):
    total = 0.0
    for _ in range(4):
        support, query = sine_task()
        outer = mse(adapt(support), query) / 4
        grads = torch.autograd.grad(outer, list(everything.values()))
        for p, g in zip(everything.values(), grads):
            p.grad = g.clamp(-1, 1) if p.grad is None else p.grad + g.clamp(-1, 1)
        total += outer.item()
    descend(everything)
    with torch.no_grad():
        for r in rate.values():
            r.clamp_(0.0, 0.2)
    if it % 6 == 0:
        support, query = sine_task()
        tuned = {n: p.detach() for n, p in adapt(support, second_order=False).items()}
        with torch.no_grad():
            print(f"iteration {it} loss {total:.4f} new task {mse(tuned, query).item():.4f}")
