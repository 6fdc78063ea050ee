import torch


class GaussianDiffusion:
    def __init__(self, timesteps=50):
        self.timesteps = timesteps
        betas = torch.linspace(1e-3, 0.15, timesteps)
        self.betas = betas
        self.alphas = 1.0 - betas
        self.alphas_bar = torch.cumprod(self.alphas, 0)

    def q_sample(self, x0, t, noise):
        ab = self.alphas_bar[t][:, None]
        return ab.sqrt() * x0 + (1 - ab).sqrt() * noise

    def training_loss(self, model, x0):
        t = torch.randint(0, self.timesteps, (x0.size(0),))
        noise = torch.randn_like(x0)
        return (model(self.q_sample(x0, t, noise), t) - noise).pow(2).mean()

    def p_mean_variance(self, model, x, t):
        b, a, ab = self.betas[t][:, None], self.alphas[t][:, None], self.alphas_bar[t][:, None]
        mean = (x - b / (1 - ab).sqrt() * model(x, t)) / a.sqrt()
        return mean, b

    @torch.no_grad()
    def p_sample_loop(self, model, shape, cond_fn=None, progress=True):
        x = torch.randn(shape)
        for i in reversed(range(self.timesteps)):
            t = torch.full((shape[0],), i, dtype=torch.long)
            mean, var = self.p_mean_variance(model, x, t)
            if cond_fn is not None:
                mean = mean + var * cond_fn(x, t)
            noise = torch.randn_like(x) if i > 0 else 0.0
            x = mean + var.sqrt() * noise
            if progress and i % 10 == 0:
                print(f"  t={i:3d}  |x| {x.norm(dim=-1).mean():.3f}")
        return x
