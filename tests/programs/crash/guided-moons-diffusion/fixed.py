import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_moons

from diffusion import GaussianDiffusion


class TimeMLP(nn.Module):
    def __init__(self, out_dim, hidden=64, timesteps=50):
        super().__init__()
        self.t_emb = nn.Embedding(timesteps, 16)
        self.net = nn.Sequential(
            nn.Linear(2 + 16, hidden), nn.SiLU(),
            nn.Linear(hidden, hidden), nn.SiLU(),
            nn.Linear(hidden, out_dim),
        )

    def forward(self, x, t):
        return self.net(torch.cat([x, self.t_emb(t)], -1))


def fit_denoiser(diffusion, x, steps=300):
    model = TimeMLP(2)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(steps):
        idx = torch.randint(0, len(x), (256,))
        loss = diffusion.training_loss(model, x[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(f"denoiser step {step} loss {loss.item():.4f}")
    return model.eval()


def fit_classifier(diffusion, x, y, steps=200):
    clf = TimeMLP(2)
    opt = torch.optim.Adam(clf.parameters(), lr=2e-3)
    for step in range(steps):
        idx = torch.randint(0, len(x), (256,))
        t = torch.randint(0, diffusion.timesteps, (256,))
        xt = diffusion.q_sample(x[idx], t, torch.randn(256, 2))
        loss = F.cross_entropy(clf(xt, t), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(f"classifier step {step} loss {loss.item():.4f}")
    return clf.eval()


def main(guidance_scale=2.0, n_samples=64, target=1):
    torch.manual_seed(2)
    x, y = make_moons(1000, noise=0.05, random_state=2)
    x = torch.tensor(x, dtype=torch.float32)
    x, y = (x - x.mean(0)) / x.std(0), torch.tensor(y)

    diffusion = GaussianDiffusion()
    denoiser = fit_denoiser(diffusion, x)
    classifier = fit_classifier(diffusion, x, y)
    labels = torch.full((n_samples,), target)

    def cond_fn(x, t):
        with torch.enable_grad():
            x_in = x.detach().requires_grad_(True)
            logits = classifier(x_in, t)
            log_probs = F.log_softmax(logits, dim=-1)
            selected = log_probs[range(len(logits)), labels]
            return torch.autograd.grad(selected.sum(), x_in)[0] * guidance_scale

    print("unconditional")
    diffusion.p_sample_loop(denoiser, (n_samples, 2))
    print("guided")
    samples = diffusion.p_sample_loop(denoiser, (n_samples, 2), cond_fn=cond_fn)
    with torch.no_grad():
        acc = (classifier(samples, torch.zeros(n_samples, dtype=torch.long)).argmax(-1) == labels).float().mean()
    print("fraction in target class %.2f" % acc)


if __name__ == "__main__":
    main()
