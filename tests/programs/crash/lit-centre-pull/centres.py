import torch


class ClassCentres:
    """A slowly moving centre per class (centre loss)."""

    def __init__(self, classes, dim, keep=0.8):
        self.keep = keep
        self.where = {c: torch.zeros(dim) for c in range(classes)}

    def pull(self, z, y):
        total = z.new_zeros(())
        for c in y.unique().tolist():
            total = total + (z[y == c] - self.where[c]).pow(2).sum()
        return total / len(y)

    def update(self, z, y):
        for c in y.unique().tolist():
            mean = z[y == c].mean(dim=0)
            self.where[c] = self.keep * self.where[c] + (1 - self.keep) * mean
