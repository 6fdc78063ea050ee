import logging
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

from blocks import MixerBlock

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class PatchMixer(L.LightningModule):
    def __init__(self, patches=6, dim=16, depth=3):
        super().__init__()
        self.stem = nn.Linear(4, dim)
        self.blocks = nn.ModuleList(MixerBlock(patches, dim, skip=0.06 * (i + 1) / depth) for i in range(depth))
        self.head = nn.Linear(dim, 2)
        self.history = []

    def forward(self, x):
        h = self.stem(x)
        for block in self.blocks:
            h = checkpoint(block, h, use_reentrant=False)
        return self.head(h.mean(dim=1))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.cross_entropy(self(x), y)
        self.history.append(loss.item())
        if len(self.history) % 4 == 1:
            print(f"step {self.global_step} loss {loss.item():.4f}")
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=5e-3)


if __name__ == "__main__":
    L.seed_everything(13, verbose=False)
    x = torch.randn(256, 6, 4)
    y = (x[:, 0, 0] * x[:, 5, 1] > 0).long()
    trainer = L.Trainer(max_epochs=4, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(PatchMixer(), DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True))
