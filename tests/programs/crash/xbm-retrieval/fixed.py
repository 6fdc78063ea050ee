import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

from memory_fixed import XBM

cfg = {
    "SEED": 5,
    "SOLVER": {"BASE_LR": 3e-3, "MAX_ITERS": 40, "LOG_PERIOD": 5},
    "XBM": {"SIZE": 512, "START_ITERATION": 12, "WEIGHT": 1.0},
    "DATA": {"CLASSES_PER_BATCH": 8, "SAMPLES_PER_CLASS": 4},
}


class ContrastiveLoss(nn.Module):
    def __init__(self, margin=0.5):
        super().__init__()
        self.margin = margin

    def forward(self, inputs_col, targets_col, inputs_row, targets_row):
        sim = inputs_col @ inputs_row.t()
        same = targets_col[:, None] == targets_row[None, :]
        pos = (1 - sim)[same & (sim < 1 - 1e-5)]
        neg = sim[(~same) & (sim > self.margin)]
        loss = pos.sum() + neg.sum()
        return loss / inputs_col.size(0)


def balanced_batches(labels, classes, per_class):
    by_class = [torch.where(labels == c)[0] for c in labels.unique()]
    while True:
        chosen = torch.randperm(len(by_class))[:classes]
        yield torch.cat([by_class[c][torch.randperm(len(by_class[c]))[:per_class]] for c in chosen])


def build_model():
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(inplace=True), nn.Dropout(0.1), nn.Linear(128, 32))


@torch.no_grad()
def recall_at_1(model, x, y):
    model.eval()
    f = F.normalize(model(x), dim=-1)
    sim = f @ f.t()
    sim.fill_diagonal_(-1)
    model.train()
    return (y[sim.argmax(1)] == y).float().mean().item()


def do_train(cfg, model, x, y, test):
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg["SOLVER"]["BASE_LR"])
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 20, 0.5)
    criterion = ContrastiveLoss()
    xbm = XBM(cfg["XBM"]["SIZE"])
    batches = balanced_batches(y, cfg["DATA"]["CLASSES_PER_BATCH"], cfg["DATA"]["SAMPLES_PER_CLASS"])
    for iteration in range(1, cfg["SOLVER"]["MAX_ITERS"] + 1):
        idx = next(batches)
        feats = F.normalize(model(x[idx]), dim=-1)
        targets = y[idx]
        xbm.enqueue_dequeue(feats, targets)

        loss = criterion(feats, targets, feats, targets)
        if iteration > cfg["XBM"]["START_ITERATION"]:
            mem_feats, mem_targets = xbm.get()
            loss = loss + cfg["XBM"]["WEIGHT"] * criterion(feats, targets, mem_feats, mem_targets)

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if iteration % cfg["SOLVER"]["LOG_PERIOD"] == 0:
            print(f"iter {iteration:3d} loss {loss.item():.4f} mem {len(xbm)} R@1 {recall_at_1(model, *test):.3f}")


def main():
    torch.manual_seed(cfg["SEED"])
    d = load_digits()
    x = torch.tensor(d.data, dtype=torch.float32) / 16
    y = torch.tensor(d.target)
    do_train(cfg, build_model(), x[:1200], y[:1200], (x[1200:], y[1200:]))


if __name__ == "__main__":
    main()
