import argparse

import torch
import torch.nn as nn

from odeint_fixed import odeint

parser = argparse.ArgumentParser("spiral ODE")
parser.add_argument("--data-size", type=int, default=200)
parser.add_argument("--batch-time", type=int, default=8)
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--warmup-iters", type=int, default=15)
parser.add_argument("--niters", type=int, default=40)
parser.add_argument("--test-freq", type=int, default=10)
args = parser.parse_args()

torch.manual_seed(0)
true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])


class Spiral(nn.Module):
    def forward(self, t, y):
        return y ** 3 @ true_A


class ODEFunc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
        for m in self.net:
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, std=0.1)
                nn.init.zeros_(m.bias)

    def forward(self, t, y):
        return self.net(y ** 3)


t = torch.linspace(0.0, 10.0, args.data_size)
with torch.no_grad():
    true_y = odeint(Spiral(), torch.tensor([[2.0, 0.0]]), t, substeps=8)


def get_batch():
    s = torch.randperm(args.data_size - args.batch_time)[:args.batch_size]
    batch_y = torch.stack([true_y[s + i] for i in range(args.batch_time)], 0)
    return true_y[s], t[:args.batch_time], batch_y


func = ODEFunc()
optimizer = torch.optim.RMSprop(func.parameters(), lr=1e-3)
for itr in range(1, args.niters + 1):
    # coarse, accurate steps first; then many cheap ones
    solver = dict(method="midpoint", substeps=1) if itr <= args.warmup_iters else dict(method="euler", substeps=4)
    optimizer.zero_grad()
    batch_y0, batch_t, batch_y = get_batch()
    pred_y = odeint(func, batch_y0, batch_t, **solver)
    loss = torch.mean(torch.abs(pred_y - batch_y))
    loss.backward()
    optimizer.step()
    if itr % args.test_freq == 0:
        with torch.no_grad():
            err = torch.mean(torch.abs(odeint(func, true_y[0], t, **solver) - true_y))
        print(f"iter {itr:04d} | loss {loss.item():.5f} | full trajectory error {err.item():.4f}")
print("finished")
