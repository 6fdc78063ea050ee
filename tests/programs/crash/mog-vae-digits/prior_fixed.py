import torch
import torch.distributions as D
import torch.nn as nn
import torch.nn.functional as F


class MixturePrior(nn.Module):
    """Learnable mixture-of-Gaussians prior p(z)."""

    def __init__(self, latent_dim, n_components=10):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(n_components))
        self.loc = nn.Parameter(torch.randn(n_components, latent_dim))
        self.raw_scale = nn.Parameter(torch.zeros(n_components, latent_dim))

    @property
    def dist(self):
        return D.MixtureSameFamily(
            D.Categorical(logits=self.logits),
            D.Independent(D.Normal(self.loc, F.softplus(self.raw_scale) + 1e-3), 1),
        )

    def log_prob(self, z):
        return self.dist.log_prob(z)

    @torch.no_grad()
    def sample(self, n):
        return self.dist.sample((n,))


class StandardPrior(nn.Module):
    def __init__(self, latent_dim):
        super().__init__()
        self.latent_dim = latent_dim

    def log_prob(self, z):
        return D.Normal(0.0, 1.0).log_prob(z).sum(-1)

    def sample(self, n):
        return torch.randn(n, self.latent_dim)
