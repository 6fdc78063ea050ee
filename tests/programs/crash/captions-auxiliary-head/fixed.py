import os
import tempfile
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from heads import CaptionModel


def start():
    store = os.path.join(tempfile.mkdtemp(), "store")
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)


def samples(n=256):
    image = torch.randn(n, 12)
    word = (image[:, :6].sum(1) > 0).long() + 2 * (image[:, 6:].sum(1) > 0).long()
    return image, word, image.mean(1)


def run(steps=24, warmup=12):
    torch.manual_seed(15)
    model = DistributedDataParallel(CaptionModel(), find_unused_parameters=True)
    optim = torch.optim.AdamW(model.parameters(), lr=5e-3)
    image, word, rank = samples()
    for step in range(steps):
        idx = torch.randint(len(image), (32,))
        stage = "words" if step < warmup else "both"
        out = model(image[idx], stage)
        loss = nn.functional.cross_entropy(out["words"], word[idx])
        if "rank" in out:
            loss = loss + nn.functional.mse_loss(out["rank"], rank[idx])
        optim.zero_grad()
        loss.backward()
        optim.step()
        if step % 6 == 0:
            print(f"step {step} ({stage}) loss {loss.item():.4f}")


start()
try:
    run()
finally:
    dist.destroy_process_group()
