import torch


def hard_triplet_loss(z, who, margin=0.3):
    dist = (z.unsqueeze(0) - z.unsqueeze(1)).pow(2).sum(-1)
    same = who.unsqueeze(0) == who.unsqueeze(1)
    near = dist.masked_fill(same, float("inf")).min(dim=1).values
    far = dist.masked_fill(~same, 0.0).max(dim=1).values
    active = far + margin > near
    if not active.any():
        return torch.zeros((), device=z.device)
    return (far - near + margin)[active].mean()
