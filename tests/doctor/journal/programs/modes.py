"""A program's own function modes, in all orders, and default devices."""

# mypy: ignore-errors

import torch
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack


class Count(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(getattr(func, "__name__", "?"))
        return func(*args, **(kwargs or {}))


def own_modes():
    return [
        type(m).__name__
        for m in _get_current_function_mode_stack()
        if "Recorder" not in type(m).__name__
    ]


def step():
    loss = (weight * torch.ones(2)).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def new_line_here(turn):
    if turn == 7:
        return torch.zeros(1).device  # a line never seen: the record of operations starts again
    return None


weight = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([weight], lr=0.1)
outer, inner = Count(), Count()
for turn in range(16):
    with outer:
        step()
        with torch.device("cpu"):
            new_line_here(turn)
            with inner:
                step()
                print(own_modes())
        print(own_modes())
    if turn == 4:
        torch.set_default_device("cpu")
    if turn == 9:
        torch.set_default_device(None)
    if turn == 12:
        with torch.device("meta"):
            print(torch.ones(2).device)  # a new line again, inside
            if turn:
                print(torch.ones(3).device)
        print(torch.ones(2).device, own_modes())
print(len(outer.names), len(inner.names), torch.ones(1).device, own_modes())
