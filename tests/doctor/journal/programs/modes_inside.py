"""The record starts and ends within a program's `with torch.device(…)` and function modes."""

# mypy: ignore-errors

import torch
from torch.overrides import TorchFunctionMode, _len_torch_function_stack


class Silent(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def step():
    loss = (weight * torch.ones(2)).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def new(turn):
    # lines never seen before: the record starts again here
    if turn == 6:
        return torch.ones(1) * 2
    if turn == 12:
        return torch.ones(1) * 3
    if turn == 18:
        torch.set_default_device("cpu")
        return torch.ones(1) * 4
    return None


weight = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([weight], lr=0.1)
for turn in range(24):
    with torch.device("cpu"):
        step()
        if turn < 18:
            new(turn)
        for _ in range(turn % 5):
            step()
    with Silent():
        step()
        new(turn)
        step()
    print(turn, torch.ones(1).device, weight.tolist())
torch.set_default_device(None)
print(_len_torch_function_stack() <= 1)
