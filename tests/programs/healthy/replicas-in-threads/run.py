import copy
import queue
import threading

import torch
from torch import nn

torch.manual_seed(64)
torch.set_num_threads(1)
centre = nn.Sequential(nn.Linear(6, 32), nn.SiLU(), nn.Linear(32, 3))
optim = torch.optim.Adam(centre.parameters(), lr=5e-3)
snapshots, scores = queue.Queue(), []


def batch(seed, n=64):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 6, generator=g)
    return x, (x @ torch.arange(18.0).view(6, 3).sin()).argmax(1)


def referee():
    """Scores detached weights in its own thread, where gradients are off."""
    torch.set_grad_enabled(False)
    judge = copy.deepcopy(centre)
    x, y = batch(9999, 256)
    while (item := snapshots.get()) is not None:
        step, weights = item
        judge.load_state_dict(weights)
        scores.append((step, (judge(x).argmax(1) == y).float().mean().item()))


def worker(rank, step, replica, out):
    x, y = batch(1000 * rank + step)
    loss = nn.functional.cross_entropy(replica(x), y)
    out[rank] = (loss.detach(), torch.autograd.grad(loss, list(replica.parameters())))


watch = threading.Thread(target=referee)
watch.start()
replicas = [copy.deepcopy(centre) for _ in range(3)]
for step in range(24):
    for replica in replicas:
        with torch.no_grad():
            for mine, theirs in zip(replica.parameters(), centre.parameters()):
                mine.copy_(theirs)
    out = [None] * len(replicas)
    crew = [threading.Thread(target=worker, args=(r, step, m, out)) for r, m in enumerate(replicas)]
    for t in crew:
        t.start()
    for t in crew:
        t.join()
    for p, *grads in zip(centre.parameters(), *(g for _, g in out)):
        p.grad = torch.stack(grads).mean(0)
    optim.step()
    if step % 6 == 0:
        snapshots.put((step, {k: v.detach().clone() for k, v in centre.state_dict().items()}))
        print(f"step {step} loss {torch.stack([l for l, _ in out]).mean():.4f}")
snapshots.put(None)
watch.join()
print("scores", [(s, round(a, 3)) for s, a in scores], "grad mode", torch.is_grad_enabled())
