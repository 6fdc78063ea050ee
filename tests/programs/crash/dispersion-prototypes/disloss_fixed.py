import torch
import torch.nn as nn
import torch.nn.functional as F


class DispersionLoss(nn.Module):
    """Compactness + dispersion on hyperspherical class prototypes (EMA-updated)."""

    def __init__(self, n_states, feat_dim, temperature=0.2, proto_m=0.9, weight=0.3):
        super().__init__()
        self.n_states = n_states
        self.temperature = temperature
        self.proto_m = proto_m
        self.weight = weight
        self.register_buffer("prototypes", F.normalize(torch.randn(n_states, feat_dim), dim=1))

    @torch.no_grad()
    def update_prototypes(self, feats, labels):
        protos = self.prototypes.clone()
        for c in labels.unique():
            centre = feats[labels == c].mean(0)
            protos[c] = F.normalize(self.proto_m * self.prototypes[c] + (1 - self.proto_m) * centre, dim=0)
        self.prototypes = protos

    def compactness(self, feats, labels):
        logits = feats @ self.prototypes.t() / self.temperature
        return F.cross_entropy(logits, labels)

    def dispersion(self, feats, labels):
        centres = torch.stack([feats[labels == c].mean(0) for c in labels.unique()])
        sim = F.normalize(centres, dim=1) @ F.normalize(centres, dim=1).t() / self.temperature
        off = ~torch.eye(len(centres), dtype=torch.bool)
        return torch.logsumexp(sim[off], 0)

    def forward(self, feats, labels):
        feats = F.normalize(feats, dim=1)
        loss = self.compactness(feats, labels)
        if self.training:
            self.update_prototypes(feats, labels)
            loss = loss + self.weight * self.dispersion(feats, labels)
        return loss

    @torch.no_grad()
    def predict(self, feats):
        return (F.normalize(feats, dim=1) @ self.prototypes.t()).argmax(1)
