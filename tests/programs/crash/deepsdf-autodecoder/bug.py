import json

import torch
import torch.nn as nn
import torch.nn.functional as F

from latents import LatentBank

SPECS = json.loads("""
{
  "CodeLength": 8, "NumShapes": 12, "SamplesPerScene": 256, "ScenesPerBatch": 4,
  "NumEpochs": 6, "ClampingDistance": 0.1, "CodeRegularization": 0.001,
  "LearningRateSchedule": {"Decoder": 0.001, "Codes": 0.005}
}
""")


class Decoder(nn.Module):
    def __init__(self, code_length, hidden=64):
        super().__init__()
        self.lin0 = nn.utils.parametrizations.weight_norm(nn.Linear(code_length + 2, hidden))
        self.lin1 = nn.utils.parametrizations.weight_norm(nn.Linear(hidden, hidden - code_length - 2))
        self.lin2 = nn.utils.parametrizations.weight_norm(nn.Linear(hidden, hidden))
        self.out = nn.Linear(hidden, 1)

    def forward(self, code, xy):
        inp = torch.cat([code, xy], -1)
        h = F.relu(self.lin0(inp))
        h = F.relu(self.lin1(h))
        h = F.relu(self.lin2(torch.cat([h, inp], -1)))
        return torch.tanh(self.out(h)).squeeze(-1)


def make_shapes(n):
    """Ellipse-ish blobs with an (approximate) signed distance."""
    radii = 0.3 + 0.4 * torch.rand(n, 2)
    angle = torch.rand(n) * 3.14

    def sdf(idx, xy):
        c, s = angle[idx].cos()[:, None], angle[idx].sin()[:, None]
        x = c * xy[..., 0] + s * xy[..., 1]
        y = -s * xy[..., 0] + c * xy[..., 1]
        r = radii[idx]
        return ((x / r[:, :1]) ** 2 + (y / r[:, 1:]) ** 2).sqrt() * r.min(-1, keepdim=True).values - r.min(-1, keepdim=True).values

    return sdf


def train(specs):
    torch.manual_seed(123)
    sdf = make_shapes(specs["NumShapes"])
    decoder = Decoder(specs["CodeLength"])
    bank = LatentBank(specs["NumShapes"], specs["CodeLength"])
    print("Starting with %d shapes, mean code norm %.3f" % (len(bank), bank.codes.norm(dim=1).mean()))

    lrs = specs["LearningRateSchedule"]
    optimizer = torch.optim.Adam(
        [
            {"params": decoder.parameters(), "lr": lrs["Decoder"]},
            {"params": bank.parameters(), "lr": lrs["Codes"]},
        ]
    )
    clamp = specs["ClampingDistance"]
    for epoch in range(1, specs["NumEpochs"] + 1):
        total = 0.0
        for scenes in torch.randperm(len(bank)).split(specs["ScenesPerBatch"]):
            xy = torch.rand(len(scenes), specs["SamplesPerScene"], 2) * 2 - 1
            target = sdf(scenes, xy).clamp(-clamp, clamp)
            code = bank[scenes][:, None].expand(-1, xy.size(1), -1)
            pred = decoder(code, xy).clamp(-clamp, clamp)
            loss = F.l1_loss(pred, target) + specs["CodeRegularization"] * min(1, epoch / 3) * bank.regulariser(scenes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total:.4f} code norm {bank.codes.norm(dim=1).mean().item():.3f}")


if __name__ == "__main__":
    train(SPECS)
