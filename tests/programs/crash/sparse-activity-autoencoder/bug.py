import torch
from torch import nn
from sparsity import ActivityPenalty
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(11)


class AutoEncoder(nn.Module):
    def __init__(self, width=20, code=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, code), nn.ReLU())
        self.decoder = nn.Sequential(nn.Linear(code, 32), nn.ReLU(), nn.Linear(32, width))

    def forward(self, x):
        return self.decoder(self.encoder(x))


def mixtures(n=512, sources=5, width=20):
    basis = torch.randn(sources, width)
    amount = torch.rand(n, sources) * (torch.rand(n, sources) < 0.3)
    return amount @ basis


def main(epochs=4):
    loader = DataLoader(TensorDataset(mixtures()), batch_size=64, shuffle=True)
    model = AutoEncoder()
    activity = ActivityPenalty(model, nn.ReLU, weight=1e-2)
    optim = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(epochs):
        running = 0.0
        for (x,) in loader:
            fit = nn.functional.mse_loss(model(x), x)
            loss = fit + activity.value() if epoch > 0 else fit
            optim.zero_grad()
            loss.backward()
            optim.step()
            running += fit.item()
        print(f"epoch {epoch} reconstruction {running / len(loader):.4f}")


main()
