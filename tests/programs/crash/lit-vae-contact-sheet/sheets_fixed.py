import lightning as L
import torch


class ContactSheet(L.Callback):
    """Decodes a few fixed codes now and then."""

    def __init__(self, every, pictures=2):
        self.every, self.pictures = every, pictures
        self.codes = None

    def on_train_epoch_end(self, trainer, pl_module):
        if (trainer.current_epoch + 1) % self.every:
            return
        if self.codes is None:
            self.codes = torch.randn(self.pictures, pl_module.latent)
        pl_module.freeze()
        ink = torch.sigmoid(pl_module.dec(self.codes))
        print("sheet:", [f"{v:.2f}" for v in ink.mean(dim=1).tolist()])
        pl_module.unfreeze()
