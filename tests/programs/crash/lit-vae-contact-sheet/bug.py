import logging
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from sheets import ContactSheet

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class StrokeVAE(L.LightningModule):
    def __init__(self, dim=25, latent=3):
        super().__init__()
        self.latent = latent
        self.enc = nn.Sequential(nn.Linear(dim, 32), nn.SiLU(), nn.Linear(32, 2 * latent))
        self.dec = nn.Sequential(nn.Linear(latent, 32), nn.SiLU(), nn.Linear(32, dim))

    def training_step(self, batch, batch_idx):
        (x,) = batch
        mu, logvar = self.enc(x).chunk(2, dim=1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
        loss = F.binary_cross_entropy_with_logits(self.dec(z), x, reduction="none").sum(1).mean() + 0.3 * kl
        if batch_idx == 0:
            print(f"epoch {self.current_epoch} elbo {-loss.item():.3f}")
        return loss

    def validation_step(self, batch, batch_idx):
        mu, _ = self.enc(batch[0]).chunk(2, dim=1)
        self.log("recon", F.binary_cross_entropy_with_logits(self.dec(mu), batch[0]))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=5e-3)


def strokes(n=128):
    grid = torch.zeros(n, 5, 5)
    grid[torch.arange(n), torch.randint(5, (n,))] = 1.0
    return TensorDataset(grid.flatten(1))


if __name__ == "__main__":
    L.seed_everything(8, verbose=False)
    trainer = L.Trainer(max_epochs=6, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, callbacks=[ContactSheet(every=3)])
    trainer.fit(StrokeVAE(), DataLoader(strokes(), batch_size=32), DataLoader(strokes(32), batch_size=32))
