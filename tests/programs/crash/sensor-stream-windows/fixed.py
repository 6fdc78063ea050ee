import math
import torch
from torch import nn
from stream_fixed import StreamModel, StreamState

torch.manual_seed(9)


def vibration(n=640):
    t = torch.arange(n) / 8
    clean = torch.sin(t) + 0.5 * torch.sin(math.pi * t / 3)
    return (clean + 0.05 * torch.randn(n)).unsqueeze(1)


def windows(series, width):
    for start in range(0, len(series) - width, width):
        yield series[start:start + width], series[start + 1:start + width + 1]


def fit(series, width=32, passes=3):
    model = StreamModel()
    optim = torch.optim.RMSprop(model.parameters(), lr=3e-3)
    for k in range(passes):
        state = StreamState.start(model.size)
        for x, y in windows(series, width):
            forecast, state = model.step(x, state)
            loss = nn.functional.mse_loss(forecast, y)
            optim.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optim.step()
            state = state.record(loss.item())
        print(f"pass {k} loss {state.average:.4f} after {state.seen} windows")


fit(vibration())
