import torch
from torch import nn
from generator import Generator

torch.manual_seed(33)


class Inversion:
    """Finds the latent seed whose picture matches the given one."""

    def __init__(self, generator, rate=0.05):
        self.generator = generator.requires_grad_(False).eval()
        self.rate = rate

    def start(self, n):
        self.seed = torch.zeros(n, 16, requires_grad=True)
        self.optim = torch.optim.Adam([self.seed], lr=self.rate)

    def picture(self):
        return self.generator.synthesis(self.generator.mapping(self.seed))

    def distance(self, goal):
        guess = self.picture()
        pixel = (guess - goal).abs().mean()
        coarse = nn.functional.avg_pool2d(guess - goal, 4).pow(2).mean()
        return pixel + coarse + 1e-3 * self.seed.pow(2).mean()

    def run(self, goal, rounds=60):
        self.start(len(goal))
        for k in range(rounds):
            loss = self.distance(goal)
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()
            if k % 15 == 0:
                print(f"round {k} loss {loss.item():.4f}")
        return self.seed.detach()


generator = Generator()
with torch.no_grad():
    goal = generator(torch.randn(4, 16))
Inversion(generator).run(goal)
