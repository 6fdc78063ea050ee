import torch
from torch import nn

torch.manual_seed(29)


class Listener(nn.Module):
    """Remembers where it stopped; the stored state never carries history."""

    def __init__(self, width=24):
        super().__init__()
        self.cell = nn.GRUCell(2, width)
        self.read = nn.Linear(width, 1)
        self.state = None
        self.activity = torch.zeros(width)
        self.log = []

    def hear(self, chunk):
        h = self.state if self.state is not None else self.read.weight.new_zeros(chunk.shape[1], self.cell.hidden_size)
        out = []
        for x in chunk:
            h = self.cell(x, h)
            out.append(self.read(h))
        self.state = h.detach()
        self.activity.mul_(0.9).add_(h.detach().abs().mean(0), alpha=0.1)
        return torch.stack(out).squeeze(-1)


def stream(length, n):
    phase = torch.rand(n) * 6
    for t in range(length):
        now = torch.sin(phase + 0.3 * t)
        yield torch.stack([now, torch.cos(phase * 0 + 0.1 * t)], dim=-1), torch.sin(phase + 0.3 * (t + 2))


def chunks(source, size):
    xs, ys = [], []
    for x, y in source:
        xs.append(x)
        ys.append(y)
        if len(xs) == size:
            yield torch.stack(xs), torch.stack(ys)
            xs, ys = [], []


@torch.no_grad()
def evaluate(model):
    kept, model.state = model.state, None
    model.eval()
    wrong = [(model.hear(x) - y).pow(2).mean() for x, y in chunks(stream(20, 8), 10)]
    model.train()
    model.state = kept
    return torch.stack(wrong).mean().item()


model = Listener()
optim = torch.optim.RMSprop(model.parameters(), lr=3e-3)
for song in range(5):
    model.state = None
    for i, (x, y) in enumerate(chunks(stream(60, 16), 10)):
        guess = model.hear(x)
        loss = (guess - y).pow(2).mean()
        optim.zero_grad()
        loss.backward()
        optim.step()
        model.log.append(loss.detach())
        if i == 3:
            print(f"song {song} loss {loss.item():.4f} held out {evaluate(model):.4f}")
print(f"mean {torch.stack(model.log).mean():.4f} activity {model.activity.mean():.3f}")
