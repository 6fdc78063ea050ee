"""Compiled regions."""

# mypy: ignore-errors

import torch
from torch import nn


@torch.compile(backend="aot_eager")
def fused(x):
    return torch.nn.functional.gelu(x) * 2


net = nn.Linear(3, 3)
whole = torch.compile(net, backend="aot_eager")
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(6):
    loss = fused(whole(torch.ones(2, 3))).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex(), type(torch.compile).__name__ != "")
