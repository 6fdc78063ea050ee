import torch


def dice_loss(logits, mask, smooth=1.0):
    pred = (torch.sigmoid(logits) > 0.5).float()
    pred, mask = pred.flatten(1), mask.flatten(1)
    both = (pred * mask).sum(1)
    score = (2 * both + smooth) / (pred.sum(1) + mask.sum(1) + smooth)
    return 1 - score.mean()
