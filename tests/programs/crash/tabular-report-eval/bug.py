import copy

import torch
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from evaluate import evaluate


class ResidualMLP(nn.Module):
    def __init__(self, d_in, d=32, depth=2, p=0.1):
        super().__init__()
        self.stem = nn.Linear(d_in, d)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.GELU(), nn.Dropout(p), nn.Linear(2 * d, d))
            for _ in range(depth)
        )
        self.head = nn.Linear(d, 1)

    def forward(self, x):
        x = self.stem(x)
        for b in self.blocks:
            x = x + b(x)
        return self.head(x).squeeze(-1)


def load(seed=0):
    d = load_diabetes()
    xtr, xva, ytr, yva = train_test_split(d.data, d.target, test_size=0.3, random_state=seed)
    sx, sy = StandardScaler().fit(xtr), StandardScaler().fit(ytr[:, None])
    t = lambda a: torch.tensor(a, dtype=torch.float32)
    make = lambda x, y: TensorDataset(t(sx.transform(x)), t(sy.transform(y[:, None])[:, 0]))
    return make(xtr, ytr), make(xva, yva)


def train_epoch(model, loader, opt, criterion):
    model.train()
    running = 0.0
    for x, y in loader:
        opt.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        opt.step()
        running += loss.item() * len(x)
    return running / len(loader.dataset)


if __name__ == "__main__":
    torch.manual_seed(0)
    train_set, val_set = load()
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=128)

    model = ResidualMLP(10)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    criterion = nn.SmoothL1Loss()
    best, best_state, patience = float("inf"), None, 0

    for epoch in range(15):
        loss = train_epoch(model, train_loader, opt, criterion)
        score, best, report = evaluate(model, val_loader, best)
        print(f"epoch {epoch:2d}  loss {loss:.4f}  val rmse {score:.4f}")
        if report is not None:
            best_state, patience = copy.deepcopy(model.state_dict()), 0
            print("   new best", report)
        else:
            patience += 1
            if patience == 6:
                print("early stop")
                break

    model.load_state_dict(best_state)
    print("best val rmse", round(best, 4))
