import torch
from torch import nn


class CodecObjective(nn.Module):
    def __init__(self, start, limit=5.0):
        super().__init__()
        self.start, self.limit = start, limit
        self.disc = nn.Sequential(nn.Conv1d(1, 8, 7, 2, 3), nn.LeakyReLU(0.2), nn.Conv1d(8, 1, 7, 2, 3))

    def balance(self, recon, adv, last):
        by_recon = torch.autograd.grad(recon, last, retain_graph=True)[0]
        by_adv = torch.autograd.grad(adv, last, retain_graph=True)[0]
        return (by_recon.norm() / (by_adv.norm() + 1e-4)).clamp(0, self.limit).detach()

    def codec(self, model, wave, step):
        out = model(wave)
        recon = (out - wave).abs().mean()
        if step < self.start:
            return recon, {"weight": 0.0}
        adv = -self.disc(out).mean()
        weight = self.balance(recon, adv, model.to_wave.weight)
        return recon + 0.1 * weight * adv, {"weight": weight.item()}

    def critic(self, model, wave):
        fake = model(wave).detach()
        return torch.relu(1 - self.disc(wave)).mean() + torch.relu(1 + self.disc(fake)).mean()
