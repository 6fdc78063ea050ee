"""Trains an MMoE on two tasks at once. It has a mistake that many first programs have."""

import argparse
import copy

import torch
from data import Part, load
from model import MMoE
from sklearn.metrics import roc_auc_score
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
parser.add_argument("--rows", type=int, help="use only the first rows of the file")
options = parser.parse_args()

torch.manual_seed(0)
data = load(options.rows)
epochs = options.epochs or data.epochs
train = data.train
sizes = ", ".join(f"{len(part.labels):,}" for part in (train, data.validation, data.test))
print(f"data: {data.name}; rows to train, validate, test: {sizes}", flush=True)

embed = nn.Embedding(data.values, 8)
inputs = 8 * train.categories.shape[1] + train.numbers.shape[1]
model = MMoE(inputs, tasks=len(data.tasks))
optimizer = torch.optim.Adam([*embed.parameters(), *model.parameters()], lr=0.002)
criterion = nn.BCEWithLogitsLoss()


@torch.no_grad()
def evaluate(part: Part) -> list[float]:
    """The area under the ROC curve, for each task."""
    logits = model(embed(part.categories), part.numbers)
    columns = zip(part.labels.T, logits.T, strict=True)
    return [float(roc_auc_score(labels, scores)) for labels, scores in columns]


def described(aucs: list[float]) -> str:
    return ", ".join(f"{task} {auc:.4f}" for task, auc in zip(data.tasks, aucs, strict=True))


best, best_state = 0.0, None
features = embed(train.categories)  # look all rows up once, to save time
for epoch in range(1, epochs + 1):
    for batch in torch.randperm(len(train.labels)).split(512):
        logits = model(features[batch], train.numbers[batch])
        labels = train.labels[batch]
        loss = criterion(logits[:, 0], labels[:, 0]) + criterion(logits[:, 1], labels[:, 1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    aucs = evaluate(data.validation)
    print(f"epoch {epoch} of {epochs}, validation AUC: {described(aucs)}", flush=True)
    if sum(aucs) > best:
        best, best_state = sum(aucs), copy.deepcopy([embed.state_dict(), model.state_dict()])

assert best_state is not None
embed.load_state_dict(best_state[0])
model.load_state_dict(best_state[1])
print(f"test AUC: {described(evaluate(data.test))}")
