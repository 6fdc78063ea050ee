"""-u'' = f on (0, 1) with a hard boundary ansatz, full-batch LBFGS, second derivatives."""
import math

import torch
from torch import nn

torch.manual_seed(11)
torch.set_default_dtype(torch.float64)

net = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))
source = nn.Parameter(torch.tensor(0.5))
points = torch.linspace(0, 1, 33).unsqueeze(1).requires_grad_()
sensors = torch.linspace(0.1, 0.9, 5).unsqueeze(1)
measured = torch.sin(math.pi * sensors)


def u(x):
    return x * (1 - x) * net(x)


def derivative(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


def objective():
    value = u(points)
    bend = derivative(derivative(value, points), points)
    residual = bend + source * math.pi**2 * torch.sin(math.pi * points)
    return residual.square().mean() + 10 * (u(sensors) - measured).square().mean()


optim = torch.optim.LBFGS([*net.parameters(), source], lr=1.0, max_iter=8, history_size=10, line_search_fn="strong_wolfe")
calls = 0


def closure():
    global calls
    calls += 1
    optim.zero_grad(set_to_none=False)
    loss = objective()
    loss.backward(inputs=[*net.parameters(), source])
    nn.utils.clip_grad_norm_(net.parameters(), 1e3)
    return loss


for outer in range(12):
    loss = optim.step(closure)
    with torch.no_grad():
        error = (u(points) - torch.sin(math.pi * points)).abs().max()
    if outer % 3 == 0:
        print(f"outer {outer} loss {loss.item():.3e} error {error.item():.2e} source {source.item():.3f} calls {calls}")
