from torch import nn


class CaptionModel(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(12, dim), nn.ReLU())
        self.words = nn.Linear(dim, 4)
        self.rank = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 1))

    def forward(self, image, stage):
        h = self.trunk(image)
        out = {"words": self.words(h)}
        if stage == "both":
            out["rank"] = self.rank(h).squeeze(-1)
        return out
