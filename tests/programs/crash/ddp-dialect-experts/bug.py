import os
import tempfile
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from dialects import DialectNet, phrases

torch.manual_seed(40)


@dataclass
class Config:
    epochs: int = 4
    steps: int = 5
    blend_epochs: int = 2
    lr: float = 5e-3


def setup():
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    store = tempfile.NamedTemporaryFile(delete=False).name
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)


def run(cfg):
    setup()
    net = DDP(DialectNet(dialects=3))
    optim = torch.optim.AdamW(net.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        mode = "blend" if epoch < cfg.blend_epochs else "route"
        total = 0.0
        for step in range(cfg.steps):
            x, y, dialect = phrases(dialect=(epoch + step) % 3)
            loss = nn.functional.cross_entropy(net(x, dialect, mode), y)
            optim.zero_grad()
            loss.backward()
            optim.step()
            total += loss.item()
            print(f"epoch {epoch} {mode} step {step} loss {loss.item():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    run(Config())
