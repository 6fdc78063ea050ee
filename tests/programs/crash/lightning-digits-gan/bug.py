import warnings

import lightning as L
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")


class Generator(nn.Module):
    def __init__(self, latent_dim):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(latent_dim, 64), nn.LeakyReLU(0.2),
            nn.Linear(64, 128), nn.BatchNorm1d(128), nn.LeakyReLU(0.2),
            nn.Linear(128, 64), nn.Tanh(),
        )

    def forward(self, z):
        return self.net(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 128), nn.LeakyReLU(0.2), nn.Linear(128, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))

    def forward(self, img):
        return self.net(img)


class GAN(L.LightningModule):
    def __init__(self, latent_dim=16, lr=2e-4, n_critic=5):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.generator = Generator(latent_dim)
        self.discriminator = Discriminator()

    def adversarial_loss(self, y_hat, target):
        return F.binary_cross_entropy_with_logits(y_hat, torch.full_like(y_hat, target))

    def training_step(self, batch, batch_idx):
        (real,) = batch
        opt_g, opt_d = self.optimizers()

        # sample once per batch and reuse it for both players
        z = torch.randn(real.size(0), self.hparams.latent_dim).type_as(real)
        fake = self.generator(z)

        real_loss = self.adversarial_loss(self.discriminator(real), 0.9)
        fake_loss = self.adversarial_loss(self.discriminator(fake), 0.0)
        d_loss = 0.5 * (real_loss + fake_loss)
        opt_d.zero_grad()
        self.manual_backward(d_loss)
        opt_d.step()

        if (batch_idx + 1) % self.hparams.n_critic == 0:
            g_loss = self.adversarial_loss(self.discriminator(fake), 1.0)
            opt_g.zero_grad()
            self.manual_backward(g_loss)
            opt_g.step()
            print(f"epoch {self.current_epoch} batch {batch_idx}: d {d_loss.item():.3f}  g {g_loss.item():.3f}")
        elif batch_idx % 2 == 0:
            print(f"epoch {self.current_epoch} batch {batch_idx}: d {d_loss.item():.3f}")

    def configure_optimizers(self):
        opt_g = torch.optim.Adam(self.generator.parameters(), lr=self.hparams.lr, betas=(0.5, 0.999))
        opt_d = torch.optim.Adam(self.discriminator.parameters(), lr=self.hparams.lr, betas=(0.5, 0.999))
        return [opt_g, opt_d], []


if __name__ == "__main__":
    L.seed_everything(7)
    images = torch.tensor(load_digits().images, dtype=torch.float32).flatten(1) / 8.0 - 1.0
    loader = DataLoader(TensorDataset(images), batch_size=128, shuffle=True, drop_last=True)
    trainer = L.Trainer(
        max_epochs=2, accelerator="cpu", devices=1, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )
    trainer.fit(GAN(), loader)
    print("done")
