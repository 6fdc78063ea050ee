from contextlib import contextmanager

import torch


class WeightAverage:
    def __init__(self, model, keep):
        self.keep = keep
        self.mean = {k: p.detach().clone() for k, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model):
        for k, p in model.named_parameters():
            self.mean[k].lerp_(p, 1 - self.keep)

    @torch.no_grad()
    def load(self, model, values):
        for k, p in model.named_parameters():
            p.copy_(values[k])

    @contextmanager
    def applied(self, model):
        own = {k: p.detach().clone() for k, p in model.named_parameters()}
        self.load(model, self.mean)
        try:
            yield model
        finally:
            self.load(model, own)
