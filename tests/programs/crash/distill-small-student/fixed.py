import torch
from torch import nn
from torch.nn import functional as F
from softening_fixed import soften
from sklearn.datasets import load_digits

torch.manual_seed(3)


def mlp(*sizes):
    parts = []
    for a, b in zip(sizes, sizes[1:]):
        parts += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*parts[:-1])


def train_teacher(x, y):
    net = mlp(64, 128, 10)
    optim = torch.optim.Adam(net.parameters(), lr=5e-3)
    for k in range(30):
        loss = F.cross_entropy(net(x), y)
        optim.zero_grad()
        loss.backward()
        optim.step()
    print(f"teacher loss {loss.item():.4f}")
    return net.eval()


def distill(teacher, x, temperature=4.0, epochs=3):
    student = mlp(64, 12, 10)
    optim = torch.optim.Adam(student.parameters(), lr=1e-2)
    for epoch in range(epochs):
        for idx in torch.randperm(len(x)).split(150):
            with torch.no_grad():
                goal = soften(teacher, x[idx], temperature)
            guess = soften(student, x[idx], temperature)
            loss = F.kl_div(guess, goal, reduction="batchmean", log_target=True) * temperature ** 2
            optim.zero_grad()
            loss.backward()
            optim.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")
    return student


data = load_digits()
x = torch.tensor(data.data[:1200] / 16.0, dtype=torch.float32)
y = torch.tensor(data.target[:1200])
distill(train_teacher(x, y), x)
