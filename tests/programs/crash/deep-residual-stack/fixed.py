import random
import torch
from torch import nn
from stack_fixed import ResidualStack
from sklearn.datasets import make_moons

random.seed(0)
torch.manual_seed(0)


class MoonClassifier(nn.Module):
    def __init__(self, dim=24, depth=6):
        super().__init__()
        self.inp = nn.Linear(2, dim)
        self.stack = ResidualStack(dim, depth, survive=0.9)
        self.out = nn.Linear(dim, 2)

    def forward(self, x):
        return self.out(self.stack(torch.tanh(self.inp(x))))


points, side = make_moons(600, noise=0.15, random_state=0)
x, y = torch.tensor(points, dtype=torch.float32), torch.tensor(side)
model = MoonClassifier()
optim = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(6):
    model.train()
    for idx in torch.randperm(len(x)).split(100):
        loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
        optim.zero_grad()
        loss.backward()
        optim.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(x).argmax(1) == y).float().mean().item()
    print(f"epoch {epoch} loss {loss.item():.4f} accuracy {accuracy:.3f}")
