import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

from lsq_fixed import QLinear, enable_quantization

FLOAT_EPOCHS = 3
QAT_EPOCHS = 3
BITS = 4


def build(bits):
    return nn.Sequential(
        QLinear(64, 64, bits), nn.BatchNorm1d(64), nn.ReLU(),
        QLinear(64, 64, bits), nn.BatchNorm1d(64), nn.ReLU(),
        QLinear(64, 10, bits),
    )


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        acc = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return acc


def run(model, loader, test, epochs, lr, tag):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(loader))
    for epoch in range(epochs):
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        print(f"[{tag}] epoch {epoch} loss {loss.item():.4f} acc {evaluate(model, *test):.3f}")


def main():
    torch.manual_seed(21)
    d = load_digits()
    xtr, xte, ytr, yte = train_test_split(d.data / 16.0, d.target, test_size=0.25, random_state=0)
    as_t = lambda x, y: (torch.tensor(x, dtype=torch.float32), torch.tensor(y))
    loader = DataLoader(TensorDataset(*as_t(xtr, ytr)), batch_size=64, shuffle=True)
    test = as_t(xte, yte)

    model = build(BITS)
    run(model, loader, test, FLOAT_EPOCHS, 0.05, "float")
    enable_quantization(model)
    print("after quantisation, before QAT: acc %.3f" % evaluate(model, *test))
    run(model, loader, test, QAT_EPOCHS, 0.01, f"int{BITS}")


if __name__ == "__main__":
    main()
