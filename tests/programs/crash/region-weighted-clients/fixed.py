import warnings
import torch
from torch import nn

warnings.filterwarnings("ignore", category=UserWarning)
torch.manual_seed(38)


class Client:
    def __init__(self, n, tilt):
        self.x = torch.randn(n, 5)
        self.y = ((self.x[:, 0] + tilt * self.x[:, 1]) > 0).float()

    def loss(self, model):
        return nn.functional.binary_cross_entropy_with_logits(model(self.x).squeeze(1), self.y)


class FairObjective:
    """Weighted mean of the clients' losses; the worse a client, the heavier."""

    def __init__(self, clients, rate=0.2):
        self.clients = clients
        self.weight = torch.full((len(clients),), 1 / len(clients))
        self.rate = rate

    def __call__(self, model):
        losses = torch.stack([client.loss(model) for client in self.clients])
        self.weight = torch.softmax(self.weight.log() + self.rate * losses.detach(), dim=0)
        return (self.weight * losses).sum()


clients = [Client(n, tilt) for n, tilt in ((200, 0.0), (60, 1.0), (20, -2.0))]
model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
objective = FairObjective(clients)
optim = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(40):
    loss = objective(model)
    optim.zero_grad()
    loss.backward()
    optim.step()
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.4f} weights {objective.weight.tolist()}")
