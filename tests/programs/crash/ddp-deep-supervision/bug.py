"""Single-node DDP training with an auxiliary head (also runs with one process on CPU)."""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class DeepSupNet(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.stage1 = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
        self.stage2 = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        self.aux_head = nn.Linear(8 * 16, classes)
        self.head = nn.Linear(16, classes)

    def forward(self, x):
        a = self.stage1(x)
        logits = self.head(self.stage2(a).flatten(1))
        return logits, self.aux_head(a.flatten(1))


def setup():
    rank = int(os.environ.get("RANK", 0))
    world = int(os.environ.get("WORLD_SIZE", 1))
    store = os.path.join(tempfile.mkdtemp(), "ddp_store")
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    return rank, world


def train_one_epoch(model, loader, optimizer, epoch, aux_epochs, aux_weight, rank):
    model.train()
    for step, (x, y) in enumerate(loader):
        logits, aux_logits = model(x)
        loss = F.cross_entropy(logits, y)
        if epoch < aux_epochs:
            loss = loss + aux_weight * F.cross_entropy(aux_logits, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 10 == 0:
            print(f"epoch {epoch} step {step:2d} loss {loss.item():.3f}")


def main(epochs=3, aux_epochs=1, aux_weight=0.4, batch_size=64):
    torch.manual_seed(0)
    rank, world = setup()
    d = load_digits()
    data = TensorDataset(torch.tensor(d.images, dtype=torch.float32)[:, None] / 16, torch.tensor(d.target))
    sampler = DistributedSampler(data, world, rank, seed=0)
    loader = DataLoader(data, batch_size=batch_size, sampler=sampler, drop_last=True)

    model = DDP(DeepSupNet())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    try:
        for epoch in range(epochs):
            sampler.set_epoch(epoch)
            train_one_epoch(model, loader, optimizer, epoch, aux_epochs, aux_weight, rank)
    finally:
        dist.destroy_process_group()
    if rank == 0:
        print("training finished")


if __name__ == "__main__":
    main()
