import torch
from torch import nn

from objective import CodecObjective

torch.manual_seed(44)


class Codec(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv1d(1, 8, 5, 2, 2), nn.ELU(), nn.Conv1d(8, 8, 5, 2, 2))
        self.decoder = nn.Sequential(nn.ConvTranspose1d(8, 8, 4, 2, 1), nn.ELU())
        self.to_wave = nn.ConvTranspose1d(8, 1, 4, 2, 1)

    def forward(self, wave):
        return self.to_wave(self.decoder(self.encoder(wave)))


def tones(n=16, length=64):
    t = torch.linspace(0, 1, length)
    pitch = 3 + 9 * torch.rand(n, 1)
    return torch.sin(2 * torch.pi * pitch * t + 6 * torch.rand(n, 1)).unsqueeze(1)


def main():
    codec = Codec()
    objective = CodecObjective(start=15)
    opt_codec = torch.optim.Adam(codec.parameters(), lr=2e-3)
    opt_disc = torch.optim.Adam(objective.disc.parameters(), lr=1e-3)
    for step in range(40):
        wave = tones()
        loss, parts = objective.codec(codec, wave, step)
        opt_codec.zero_grad()
        loss.backward()
        opt_codec.step()

        d_loss = objective.critic(codec, wave)
        opt_disc.zero_grad()
        d_loss.backward()
        opt_disc.step()
        if step % 3 == 0:
            print(f"step {step} loss {loss.item():.4f} critic {d_loss.item():.4f} weight {parts['weight']:.3f}")


if __name__ == "__main__":
    main()
