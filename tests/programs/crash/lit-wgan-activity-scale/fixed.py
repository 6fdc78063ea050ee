import logging
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from critics_fixed import ScaledCritic

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class RingGAN(L.LightningModule):
    def __init__(self, latent=4):
        super().__init__()
        self.automatic_optimization = False
        self.latent = latent
        self.generator = nn.Sequential(nn.Linear(latent, 32), nn.ReLU(), nn.Linear(32, 2))
        self.critic = ScaledCritic(2, 32)

    def training_step(self, batch, batch_idx):
        (real,) = batch
        opt_g, opt_c = self.optimizers()
        fake = self.generator(torch.randn(len(real), self.latent))

        c_loss = torch.relu(1 - self.critic(real)).mean() + torch.relu(1 + self.critic(fake.detach())).mean()
        opt_c.zero_grad()
        self.manual_backward(c_loss)
        opt_c.step()

        g_loss = -self.critic(fake).mean()
        opt_g.zero_grad()
        self.manual_backward(g_loss)
        opt_g.step()
        if batch_idx % 4 == 0:
            print(f"epoch {self.current_epoch} batch {batch_idx} critic {c_loss.item():.4f} gen {g_loss.item():.4f}")

    def configure_optimizers(self):
        return (torch.optim.Adam(self.generator.parameters(), lr=1e-3, betas=(0.5, 0.9)),
                torch.optim.Adam(self.critic.parameters(), lr=1e-3, betas=(0.5, 0.9)))


if __name__ == "__main__":
    L.seed_everything(77, verbose=False)
    angle = torch.rand(512) * 6.283
    ring = torch.stack([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(512, 2)
    trainer = L.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(RingGAN(), DataLoader(TensorDataset(ring), batch_size=64, shuffle=True))
