"""Grad modes, default dtype, lazy modules, copies, files, warnings, generators of all kinds."""

# mypy: ignore-errors

import copy
import io
import pickle
import random
import warnings

import numpy as np
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.Dropout(0.3), nn.LazyLinear(1))

    def forward(self, x):
        return self.body(x)


torch.set_default_dtype(torch.float64)
net = Net()
net(torch.randn(2, 4))
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)
shadow = copy.deepcopy(net).requires_grad_(False)
for turn in range(24):
    order = np.random.permutation(4)
    data = torch.randn(5, 4)[:, order] + random.random()
    loss = net(data).pow(2).mean()
    optimizer.zero_grad(set_to_none=turn % 2 == 0)
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    with torch.no_grad():
        for slow, fast in zip(shadow.parameters(), net.parameters(), strict=True):
            slow.lerp_(fast, 0.1)
    if turn == 12:
        torch.autograd.set_detect_anomaly(False)
        file = io.BytesIO()
        torch.save(net.state_dict(), file)
        file.seek(0)
        net.load_state_dict(torch.load(file))
        print(len(pickle.dumps(copy.deepcopy(net))))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    torch.nn.functional.mse_loss(torch.ones(2), torch.ones(1))
print([str(one.message).splitlines()[0] for one in caught])
print(loss.item().hex(), torch.get_default_dtype(), torch.rand(1).item().hex())
torch.set_grad_enabled(False)
