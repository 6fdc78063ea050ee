import logging, warnings
import torch
from torch import nn
import lightning as L
from torch.utils.data import DataLoader, TensorDataset
from logbook import gather

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class SpectrumVAE(L.LightningModule):
    def __init__(self, width=30, code=3, beta=0.05):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, 2 * code))
        self.decoder = nn.Sequential(nn.Linear(code, 32), nn.GELU(), nn.Linear(32, width))

    def terms(self, x):
        mean, spread = self.encoder(x).chunk(2, dim=-1)
        z = mean + torch.randn_like(mean) * (0.5 * spread).exp()
        fit = nn.functional.mse_loss(self.decoder(z), x)
        kl = 0.5 * (mean.pow(2) + spread.exp() - 1 - spread).mean()
        return dict(loss=fit + self.hparams.beta * kl, fit=fit, kl=kl)

    def training_step(self, batch, batch_idx):
        values = gather("train", self.terms(batch[0]))
        self.log_dict(values, on_epoch=True, on_step=False)
        return values["train/loss"]

    def on_train_epoch_end(self):
        print(f"epoch {self.current_epoch} loss {self.trainer.callback_metrics['train/loss']:.4f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=5e-3)


def main():
    L.seed_everything(7, verbose=False)
    grid = torch.linspace(0, 1, 30)
    centre, width = torch.rand(320, 1), 0.05 + 0.1 * torch.rand(320, 1)
    spectra = torch.exp(-((grid - centre) / width) ** 2)
    loader = DataLoader(TensorDataset(spectra), batch_size=32, shuffle=True)
    trainer = L.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(SpectrumVAE(), loader)


if __name__ == "__main__":
    main()
