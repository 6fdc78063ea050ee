import torch
from torch import nn

from rollout import windows

torch.manual_seed(9)


class Field(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 2))

    def forward(self, state):
        return self.f(state)


def true_field(state):
    angle, speed = state.unbind(-1)
    return torch.stack([speed, -torch.sin(angle) - 0.1 * speed], dim=-1)


def main(epochs=3, start_points=24):
    field = Field()
    optim = torch.optim.Adam(field.parameters(), lr=0.01)
    for epoch in range(epochs):
        start = torch.randn(start_points, 2)
        with torch.no_grad():
            truth = list(zip(range(12), windows(true_field, start)))
        mine = windows(field, start)
        for chunk, goal in truth:
            path = next(mine)
            loss = (path - goal).pow(2).mean()
            optim.zero_grad()
            loss.backward()
            optim.step()
            if chunk % 4 == 0:
                print(f"epoch {epoch} chunk {chunk} loss {loss.item():.5f}")


main()
