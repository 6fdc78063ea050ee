import torch
import torch.nn as nn
import torch.nn.functional as F

from bifpn_fixed import BiFPNLayer
from blocks import Backbone


class Detector(nn.Module):
    """Centre heat-map detector on three pyramid levels."""

    def __init__(self, channels=12, repeats=2):
        super().__init__()
        self.backbone = Backbone(channels)
        self.neck = nn.ModuleList(BiFPNLayer(channels) for _ in range(repeats))
        self.head = nn.Conv2d(channels, 1, 1)

    def forward(self, x):
        feats = self.backbone(x)
        for layer in self.neck:
            feats = layer(*feats)
        return [self.head(f) for f in feats]


def make_batch(n, size=32):
    img = 0.2 * torch.randn(n, 1, size, size)
    heat = torch.zeros(n, 1, size, size)
    for b in range(n):
        cy, cx = torch.randint(4, size - 4, (2,)).tolist()
        img[b, 0, cy - 3:cy + 3, cx - 3:cx + 3] += 1.0
        heat[b, 0, cy - 1:cy + 1, cx - 1:cx + 1] = 1.0
    return img, heat


def loss_fn(preds, heat):
    total = 0.0
    for p in preds:
        t = F.adaptive_max_pool2d(heat, p.shape[-2:])
        total = total + F.binary_cross_entropy_with_logits(p, t, pos_weight=torch.tensor(10.0))
    return total


def main():
    torch.manual_seed(0)
    model = Detector()
    print("params: %.1fk" % (sum(p.numel() for p in model.parameters()) / 1e3))
    # sanity check of the shapes
    model.eval()
    with torch.no_grad():
        print([tuple(o.shape) for o in model(make_batch(2)[0])])

    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(12):
        img, heat = make_batch(8)
        loss = loss_fn(model(img), heat)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 4 == 0:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
