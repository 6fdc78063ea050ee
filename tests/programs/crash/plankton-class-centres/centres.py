import torch


class ClassCentres:
    """Mean embedding of every class."""

    def __init__(self, body, classes):
        self.body, self.classes = body, classes
        self.table = None

    @property
    def ready(self):
        return self.table is not None

    def refresh(self, x, y):
        z = self.body(x)
        member = torch.nn.functional.one_hot(y, self.classes).float()
        self.table = (member.T @ z) / member.sum(0).clamp(min=1).unsqueeze(1)

    def distance(self, z, y):
        return (z - self.table[y]).pow(2).sum(dim=1).mean()
