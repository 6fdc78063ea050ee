import torch
from torch import nn
from updates import Updater

torch.manual_seed(45)


class FaceModel(nn.Module):
    def __init__(self, width=32, people=6):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.identity = nn.Linear(width, people)
        self.age = nn.Linear(width, 1)

    def forward(self, x):
        h = self.body(x)
        return self.identity(h), self.age(h).squeeze(-1)


def portraits(n=360, people=6):
    who, age = torch.randint(people, (n,)), torch.rand(n)
    x = torch.randn(people, 10)[who] + age.unsqueeze(1) * torch.randn(10) + 0.3 * torch.randn(n, 10)
    return x, who, age


x, who, age = portraits()
model = FaceModel()
updater = Updater(model)
for epoch in range(4):
    for idx in torch.randperm(len(x)).split(60):
        person, years = model(x[idx])
        losses = {"identity": nn.functional.cross_entropy(person, who[idx]),
                  "age": nn.functional.mse_loss(years, age[idx])}
        updater.apply(losses)
    print(f"epoch {epoch} " + " ".join(f"{k} {v.item():.4f}" for k, v in losses.items()))
