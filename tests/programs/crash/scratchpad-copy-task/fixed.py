import torch
from torch import nn

torch.manual_seed(70)


class Scratchpad(nn.Module):
    """A small memory with soft reads and writes."""

    def __init__(self, slots=6, width=10):
        super().__init__()
        self.blank = nn.Parameter(torch.randn(slots, width) * 0.1)
        self.address, self.content = nn.Linear(width, slots), nn.Linear(width, width)
        self.output = nn.Linear(width, width)
        self.pad = None

    def wipe(self, n):
        self.pad = self.blank.expand(n, -1, -1)

    def forward(self, x):
        where = self.address(x).softmax(dim=-1).unsqueeze(-1)
        self.pad = self.pad * (1 - where) + where * torch.tanh(self.content(x)).unsqueeze(1)
        return self.output((self.pad * where).sum(dim=1))


def episode(length, n=20):
    symbols = torch.randint(0, 10, (length + 1, n))
    hot = nn.functional.one_hot(symbols, 10).float()
    return hot[1:], symbols[:-1]


def curriculum(epoch):
    return 3 if epoch < 4 else 6


def main(epochs=8, piece=3):
    net = Scratchpad()
    optim = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(epochs):
        x, y = episode(curriculum(epoch))
        net.wipe(x.shape[1])
        for begin in range(0, len(x), piece):
            scores = torch.stack([net(step) for step in x[begin:begin + piece]])
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), y[begin:begin + piece].flatten())
            optim.zero_grad()
            loss.backward()
            optim.step()
            net.pad = net.pad.detach()
            print(f"epoch {epoch} piece {begin // piece} loss {loss.item():.4f}")


main()
