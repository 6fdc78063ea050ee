import torch
import torch.nn as nn
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from disloss_fixed import DispersionLoss

torch.manual_seed(9)

wine = load_wine()
X = torch.tensor(StandardScaler().fit_transform(wine.data), dtype=torch.float32)
y = torch.tensor(wine.target)
perm = torch.randperm(len(X))
tr, te = perm[:130], perm[130:]


class Lobe(nn.Module):
    def __init__(self, dims=(13, 32, 16, 4)):
        super().__init__()
        layers = []
        for a, b in zip(dims[:-1], dims[1:]):
            layers += [nn.Linear(a, b), nn.ELU()]
        self.net = nn.Sequential(*layers[:-1])

    def forward(self, x):
        return self.net(x)


class Estimator:
    def __init__(self, lobe, loss, lr=5e-3, pretrain=3):
        self.lobe, self.loss, self.pretrain = lobe, loss, pretrain
        self.optimizer = torch.optim.Adam(lobe.parameters(), lr=lr)
        self.history = []

    def partial_fit(self, x, labels, warm):
        # no prototype movement while the lobe is still random
        self.loss.train(not warm)
        self.lobe.train()
        loss_value = self.loss(self.lobe(x), labels)
        self.optimizer.zero_grad()
        loss_value.backward()
        self.optimizer.step()
        self.history.append(loss_value.item())
        return self.history[-1]

    def fit(self, x, labels, epochs=12, batch=32):
        for epoch in range(epochs):
            order = torch.randperm(len(x))
            losses = [self.partial_fit(x[i], labels[i], warm=epoch < self.pretrain) for i in order.split(batch)]
            print(f"epoch {epoch:2d}  loss {sum(losses) / len(losses):.4f}")
        return self

    def score(self, x, labels):
        self.lobe.eval()
        with torch.no_grad():
            return (self.loss.predict(self.lobe(x)) == labels).float().mean().item()


est = Estimator(Lobe(), DispersionLoss(n_states=3, feat_dim=4))
est.fit(X[tr], y[tr])
print("test accuracy %.3f" % est.score(X[te], y[te]))
