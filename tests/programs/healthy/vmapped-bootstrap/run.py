import copy

import torch
from torch import nn
from torch.func import functional_call, grad_and_value, hessian, jacrev, stack_module_state, vmap

torch.manual_seed(80)
members = [nn.Sequential(nn.Linear(2, 24), nn.GELU(), nn.Linear(24, 1)) for _ in range(6)]
params, buffers = stack_module_state(members)
params = {n: p.detach() for n, p in params.items()}
skeleton = copy.deepcopy(members[0]).to("meta")
moment = {n: torch.zeros_like(p) for n, p in params.items()}


def predict(p, b, x):
    return functional_call(skeleton, (p, b), (x,)).squeeze(-1)


def objective(p, b, x, y, w):
    miss = (w * (predict(p, b, x) - y).pow(2)).mean()
    slope = vmap(jacrev(lambda one: predict(p, b, one.unsqueeze(0)).squeeze(0)))(x[:8])
    return miss + 1e-3 * slope.pow(2).sum(-1).mean()


x = torch.rand(120, 2) * 4 - 2
y = torch.sin(2 * x[:, 0]) * x[:, 1]
counts = torch.poisson(torch.ones(6, 120))
step_of = vmap(grad_and_value(objective), in_dims=(0, 0, None, None, 0))
for step in range(60):
    grads, losses = step_of(params, buffers, x, y, counts)
    for n, g in grads.items():
        moment[n].mul_(0.9).add_(g)
        params[n].sub_(0.05 * moment[n])
    if step % 12 == 0:
        print(f"step {step} loss {losses.mean():.4f} spread {losses.std():.4f}")

grid = torch.tensor([[0.3, 0.5], [1.0, -1.0]])
mean = lambda q: vmap(predict, in_dims=(0, 0, None))(params, buffers, q.unsqueeze(0)).mean()
print("curvature", [round(hessian(mean)(q).diagonal().sum().item(), 3) for q in grid])

# distil the ensemble into one ordinary module
student = nn.Sequential(nn.Linear(2, 32), nn.GELU(), nn.Linear(32, 1))
optim = torch.optim.Adam(student.parameters(), lr=0.01)
for step in range(30):
    q = torch.rand(64, 2) * 4 - 2
    goal = vmap(predict, in_dims=(0, 0, None))(params, buffers, q).mean(0)
    loss = (student(q).squeeze(-1) - goal).pow(2).mean()
    optim.zero_grad()
    loss.backward()
    optim.step()
print(f"student loss {loss.item():.4f}")
