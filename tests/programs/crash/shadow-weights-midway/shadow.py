from contextlib import contextmanager

import torch


class Shadow:
    """An exponential average of the weights, for evaluation."""

    def __init__(self, model, decay=0.9):
        self.model, self.decay = model, decay
        self.average = {n: p.detach().clone() for n, p in model.named_parameters()}

    @torch.no_grad()
    def follow(self):
        for n, p in self.model.named_parameters():
            self.average[n].lerp_(p, 1 - self.decay)

    @torch.no_grad()
    def write(self, values):
        for n, p in self.model.named_parameters():
            p.copy_(values[n])

    @contextmanager
    def applied(self):
        backup = {n: p.detach().clone() for n, p in self.model.named_parameters()}
        self.write(self.average)
        try:
            yield
        finally:
            self.write(backup)
