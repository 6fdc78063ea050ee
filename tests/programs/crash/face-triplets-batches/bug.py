import torch
from torch import nn
from mining import hard_triplet_loss
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(6)


def people(n_people=8, shots=12):
    centre = 2.0 * torch.randn(n_people, 10)
    x = centre.repeat_interleave(shots, 0) + torch.randn(n_people * shots, 10)
    return x, torch.arange(n_people).repeat_interleave(shots)


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 8))

    def forward(self, x):
        return nn.functional.normalize(self.net(x), dim=1)


def train(epochs=12):
    loader = DataLoader(TensorDataset(*people()), batch_size=16, shuffle=True)
    model = Embedder()
    optim = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    for epoch in range(epochs):
        seen = []
        for x, who in loader:
            loss = hard_triplet_loss(model(x), who)
            optim.zero_grad()
            loss.backward()
            optim.step()
            seen.append(loss.item())
        print(f"epoch {epoch} loss {sum(seen) / len(seen):.4f}")


train()
