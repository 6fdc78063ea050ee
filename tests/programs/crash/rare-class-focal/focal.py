import torch
from torch.nn import functional as F


def focal_loss(logits, target, weight=None, focus=2.0):
    log_p = F.log_softmax(logits, dim=-1).gather(1, target.unsqueeze(1)).squeeze(1)
    terms = -((1 - log_p.exp()) ** focus) * log_p
    if weight is not None:
        return weight[target] * terms
    return terms.mean()
