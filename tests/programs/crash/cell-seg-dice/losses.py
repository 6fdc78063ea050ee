import torch
import torch.nn as nn
import torch.nn.functional as F


def soft_flatten(t):
    return t.flatten(1)


class DiceLoss(nn.Module):
    def __init__(self, threshold=0.5, smooth=1.0):
        super().__init__()
        self.threshold = threshold
        self.smooth = smooth

    def forward(self, logits, target):
        probs = torch.sigmoid(logits)
        mask = (probs > self.threshold).float()
        m, t = soft_flatten(mask), soft_flatten(target)
        inter = (m * t).sum(1)
        dice = (2 * inter + self.smooth) / (m.sum(1) + t.sum(1) + self.smooth)
        return 1 - dice.mean()


class ComboLoss(nn.Module):
    """BCE at the start, Dice once the masks are not empty any more."""

    def __init__(self, warmup_epochs=2):
        super().__init__()
        self.warmup_epochs = warmup_epochs
        self.dice = DiceLoss()

    def forward(self, logits, target, epoch):
        bce_weight = max(0.0, 1.0 - epoch / self.warmup_epochs)
        loss = (1 - bce_weight) * self.dice(logits, target)
        if bce_weight > 0:
            loss = loss + bce_weight * F.binary_cross_entropy_with_logits(logits, target)
        return loss
