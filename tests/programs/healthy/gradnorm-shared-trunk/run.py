import torch
from torch import nn

torch.manual_seed(3)


class Tasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 16), nn.Tanh())
        self.heads = nn.ModuleDict({"depth": nn.Linear(16, 1), "sign": nn.Linear(16, 2)})
        self.log_weight = nn.Parameter(torch.zeros(2))

    def losses(self, x):
        h = self.trunk(x)
        depth = (self.heads["depth"](h).squeeze(1) - x[:, 0] * x[:, 1]).pow(2).mean()
        sign = nn.functional.cross_entropy(self.heads["sign"](h), (x[:, 2] > 0).long())
        return torch.stack([depth, sign])


model = Tasks()
shared = model.trunk[2].weight
main = [p for n, p in model.named_parameters() if n != "log_weight"]
optim = torch.optim.Adam(main, lr=3e-3)
weigh = torch.optim.SGD([model.log_weight], lr=0.05)
first = None

for step in range(60):
    losses = model.losses(torch.randn(64, 5))
    first = losses.detach() if first is None else first
    weight = 2 * model.log_weight.softmax(0)
    optim.zero_grad()
    weigh.zero_grad()

    # per-task gradient size at the shared layer, as a function of the weights
    sizes = []
    for i in range(2):
        (g,) = torch.autograd.grad(weight[i] * losses[i], shared, retain_graph=True, create_graph=True)
        sizes.append(g.norm())
    sizes = torch.stack(sizes)
    pace = (losses.detach() / first) / (losses.detach() / first).mean()
    goal = (sizes.mean() * pace.sqrt()).detach()
    (model.log_weight.grad,) = torch.autograd.grad((sizes - goal).abs().sum(), model.log_weight, retain_graph=True)

    # each task runs backward by itself, the last one lets the graph go
    fixed = weight.detach()
    (fixed[0] * losses[0]).backward(retain_graph=True)
    (fixed[1] * losses[1]).backward()
    optim.step()
    weigh.step()
    if step % 10 == 0:
        print(f"step {step} loss {(fixed * losses).sum().item():.4f} weights {[round(w, 2) for w in weight.tolist()]}")
