import torch
from torch import nn
from propagate_fixed import Propagation

torch.manual_seed(21)


def graph(nodes):
    """A ring with a few chords; the target counts the chords."""
    ring = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    chords = int(torch.randint(1, 5, (1,)))
    extra = torch.randint(nodes, (2, chords))
    edges = torch.cat([ring, extra], dim=1)
    return torch.cat([edges, edges.flip(0)], dim=1), torch.tensor(float(chords))


class Readout(nn.Module):
    def __init__(self, dim=16, rounds=3):
        super().__init__()
        self.seed = nn.Parameter(torch.randn(dim))
        self.rounds = nn.ModuleList(Propagation(dim) for _ in range(rounds))
        self.out = nn.Linear(dim, 1)

    def forward(self, edges, nodes):
        h = self.seed.repeat(nodes, 1)
        for r in self.rounds:
            h = r(h, edges)
        return self.out(h.sum(0)).squeeze()


molecules = [graph(10) for _ in range(40)]
model = Readout()
optim = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(3):
    total = 0.0
    for edges, target in molecules:
        loss = nn.functional.smooth_l1_loss(model(edges, 10), target)
        optim.zero_grad()
        loss.backward()
        optim.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / len(molecules):.4f}")
