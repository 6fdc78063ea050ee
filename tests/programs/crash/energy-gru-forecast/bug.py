# -*- coding: utf-8 -*-
# household energy forecasting with a GRU, batches are consecutive windows
import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(1)
np.random.seed(1)

SEQ_LEN = 24
BATCH = 8
HIDDEN = 24
EPOCHS = 3

# ----- synthetic load curves ----------------------------------------------
hours = np.arange(24 * 60)
load = (
    1.5
    + 0.8 * np.sin(2 * np.pi * hours / 24)
    + 0.3 * np.sin(2 * np.pi * hours / (24 * 7))
    + 0.1 * np.random.randn(BATCH, len(hours))
)
load = (load - load.mean()) / load.std()
series = torch.tensor(load, dtype=torch.float32).unsqueeze(-1)      # (BATCH, T, 1)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, HIDDEN, num_layers=2, batch_first=True, dropout=0.1)
        self.fc = nn.Linear(HIDDEN, 1)

    def forward(self, x, h):
        out, h = self.gru(x, h)
        return self.fc(out), h

    def init_hidden(self):
        return torch.zeros(2, BATCH, HIDDEN)


model = Forecaster()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.8)

n_windows = (series.size(1) - 1) // SEQ_LEN
print("windows per epoch:", n_windows)

for epoch in range(EPOCHS):
    model.train()
    h = model.init_hidden()
    epoch_loss = 0.0
    for w in range(n_windows):
        x = series[:, w * SEQ_LEN:(w + 1) * SEQ_LEN]
        y = series[:, w * SEQ_LEN + 1:(w + 1) * SEQ_LEN + 1]

        pred, h = model(x, h)
        loss = criterion(pred, y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        epoch_loss += loss.item()
        if w % 20 == 0:
            print("epoch %d window %d loss %.4f" % (epoch, w, loss.item()))
    scheduler.step()
    print("epoch %d mean loss %.4f" % (epoch, epoch_loss / n_windows))

model.eval()
with torch.no_grad():
    pred, _ = model(series[:, -49:-1], model.init_hidden())
    print("last two days MSE %.4f" % criterion(pred, series[:, -48:]).item())
