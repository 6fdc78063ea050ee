import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.distributions import Normal

from prior_fixed import MixturePrior, StandardPrior


class VAE(nn.Module):
    def __init__(self, prior, latent_dim, hidden=96):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, hidden), nn.GELU(), nn.Linear(hidden, 2 * latent_dim))
        self.decoder = nn.Sequential(nn.Linear(latent_dim, hidden), nn.GELU(), nn.Linear(hidden, 64))
        self.prior = prior

    def forward(self, x):
        mu, log_sigma = self.encoder(x).chunk(2, -1)
        q = Normal(mu, log_sigma.clamp(-5, 3).exp())
        z = q.rsample()
        rec = F.binary_cross_entropy_with_logits(self.decoder(z), x, reduction="none").sum(-1)
        kl = q.log_prob(z).sum(-1) - self.prior.log_prob(z)
        return rec, kl


def train(model, data, args):
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        beta = min(1.0, (epoch + 1) / args.warmup)
        perm = torch.randperm(len(data))
        for it, idx in enumerate(perm.split(args.batch_size)):
            rec, kl = model(data[idx])
            loss = (rec + beta * kl).mean()
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            if it % 5 == 0:
                print(f"[{epoch}:{it:02d}] -ELBO {loss.item():8.3f}  KL {kl.mean().item():7.3f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--prior", choices=["standard", "mog"], default="mog")
    p.add_argument("--latent-dim", type=int, default=8)
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch-size", type=int, default=128)
    p.add_argument("--warmup", type=int, default=2)
    p.add_argument("--lr", type=float, default=2e-3)
    args = p.parse_args()

    torch.manual_seed(11)
    data = torch.tensor(load_digits().data, dtype=torch.float32) / 16.0
    prior = MixturePrior(args.latent_dim) if args.prior == "mog" else StandardPrior(args.latent_dim)
    model = VAE(prior, args.latent_dim)
    print("parameters:", sum(p.numel() for p in model.parameters()))
    train(model, data, args)
    with torch.no_grad():
        imgs = torch.sigmoid(model.decoder(model.prior.sample(16)))
    print("sample mean intensity %.3f" % imgs.mean())
