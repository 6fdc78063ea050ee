import math

import torch
import torch.nn as nn

from model import RNNModel
from utils import Corpus, batchify, get_batch, repackage_hidden

torch.manual_seed(141)
BPTT, BSZ, CLIP = 20, 8, 0.25

corpus = Corpus()
split = int(0.9 * len(corpus.data))
train_data = batchify(corpus.data[:split], BSZ)
val_data = batchify(corpus.data[split:], BSZ)
ntokens = len(corpus.vocab)

model = RNNModel(ntokens, ninp=24, nhid=40, nlayers=2)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)


def evaluate(source):
    model.eval()
    total, hidden = 0.0, model.init_hidden(BSZ)
    with torch.no_grad():
        for i in range(0, source.size(0) - 1, BPTT):
            data, targets = get_batch(source, i, BPTT)
            output, hidden = model(data, hidden)
            total += len(data) * criterion(output, targets).item()
    return total / (len(source) - 1)


def train(epoch):
    model.train()
    hidden = model.init_hidden(BSZ)
    for batch, i in enumerate(range(0, train_data.size(0) - 1, BPTT)):
        data, targets = get_batch(train_data, i, BPTT)
        hidden = repackage_hidden(hidden)
        optimizer.zero_grad()
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        if batch % 10 == 0:
            print(f"| epoch {epoch} | batch {batch:3d} | loss {loss.item():.3f} | bpc {loss.item() / math.log(2):.3f}")


print("val loss before training %.3f" % evaluate(val_data))
for epoch in range(1, 3):
    train(epoch)
    print("val loss %.3f" % evaluate(val_data))
