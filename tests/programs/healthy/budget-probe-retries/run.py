"""Training with a retry policy: some errors are provoked or expected, and handled."""
import torch
from torch import nn

torch.manual_seed(36)
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optim = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)


class OutOfBudget(RuntimeError):
    pass


def self_check():
    """The graph is freed after one backward and no gradient is made under no_grad."""
    seen = []
    y = net(torch.randn(4, 8)).exp().sum()
    y.backward()
    try:
        y.backward()
    except RuntimeError as problem:
        seen.append("second time" in str(problem))
    with torch.no_grad():
        z = net(torch.randn(4, 8)).sum()
    try:
        z.backward()
    except RuntimeError as problem:
        seen.append("does not require grad" in str(problem))
    net.zero_grad(set_to_none=True)
    return all(seen)


def loss_of(x, y, budget):
    if len(x) > budget:
        raise OutOfBudget(f"{len(x)} rows do not fit in {budget}")
    return nn.functional.mse_loss(net(x).squeeze(1), y, reduction="sum")


def accumulate(x, y, budget):
    """Halves the batch until it fits; gradients add up."""
    try:
        loss = loss_of(x, y, budget)
    except OutOfBudget:
        middle = len(x) // 2
        return accumulate(x[:middle], y[:middle], budget) + accumulate(x[middle:], y[middle:], budget)
    loss.backward()
    return loss.item()


print("self check", self_check())
skipped = 0
for step in range(40):
    x = torch.randn(96, 8)
    if step % 13 == 5:
        x[0, 0] = float("inf")
    y = x[:, 1] * x[:, 2]
    optim.zero_grad()
    total = accumulate(x, y, budget=100 if step % 4 else 30) / len(x)
    for p in net.parameters():
        p.grad /= len(x)
    try:
        nn.utils.clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=True)
    except RuntimeError:
        skipped += 1
        continue
    optim.step()
    if step % 8 == 0:
        print(f"step {step} loss {total:.4f}")
print("skipped", skipped)
