import random

import torch


def bars(n=24):
    y = torch.randint(2, (n,))
    img = torch.zeros(n, 8, 8)
    at = torch.randint(8, (n,))
    rows, cols = y == 0, y == 1
    img[torch.nonzero(rows).flatten(), at[rows]] = 1.0
    img[torch.nonzero(cols).flatten(), :, at[cols]] = 1.0
    return (img + 0.2 * torch.rand(n, 8, 8)).clamp(0, 1).unsqueeze(1), y


class Augment:
    """Applies one randomly chosen transform to the whole batch."""

    def __init__(self, rare=0.12):
        self.rare = rare

    def flip(self, x):
        return x.flip(random.choice([2, 3]))

    def shift(self, x):
        return x.roll(random.randrange(-2, 3), dims=random.choice([2, 3]))

    def posterize(self, x, bits=2):
        step = 256 >> bits
        return ((x * 255).long() // step * step) / 255

    def __call__(self, x):
        if random.random() < self.rare:
            return self.posterize(x)
        return random.choice([self.flip, self.shift])(x)
