import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

from text_tower import TextTower, zeroshot_classifier


class ImageTower(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU())
        self.proj = nn.Linear(16 * 16, dim)

    def forward(self, x):
        return self.proj(self.conv(x).flatten(1))


class PromptClassifier(nn.Module):
    """Image tower + residual adapter scored against fixed text embeddings."""

    def __init__(self, image_tower, text_features, ratio=0.5):
        super().__init__()
        self.image_tower = image_tower
        self.register_buffer("text_features", text_features)
        dim = text_features.shape[1]
        self.adapter = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.logit_scale = nn.Parameter(torch.tensor(10.0).log())
        self.ratio = ratio

    def forward(self, image):
        f = self.image_tower(image)
        f = self.ratio * self.adapter(f) + (1 - self.ratio) * f
        f = F.normalize(f, dim=-1)
        return self.logit_scale.exp() * f @ self.text_features.t()


def accuracy(model, loader):
    model.eval()
    hits = n = 0
    with torch.no_grad():
        for x, y in loader:
            hits += (model(x).argmax(-1) == y).sum().item()
            n += len(y)
    model.train()
    return hits / n


def main():
    torch.manual_seed(0)
    d = load_digits()
    x = torch.tensor(d.images, dtype=torch.float32)[:, None] / 16
    y = torch.tensor(d.target)
    train = DataLoader(TensorDataset(x[:1400], y[:1400]), batch_size=64, shuffle=True)
    test = DataLoader(TensorDataset(x[1400:], y[1400:]), batch_size=200)

    text_features = zeroshot_classifier(TextTower())
    print("text features", tuple(text_features.shape))
    model = PromptClassifier(ImageTower(), text_features)
    print("zero-shot accuracy %.3f" % accuracy(model, test))

    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(2):
        for x_b, y_b in train:
            loss = F.cross_entropy(model(x_b), y_b)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f} accuracy {accuracy(model, test):.3f}")


if __name__ == "__main__":
    main()
