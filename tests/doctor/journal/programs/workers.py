"""Threads, data loader workers, generators, exceptions that are caught."""

# mypy: ignore-errors

import threading

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train(net, results, key):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(6):
        loss = net(torch.ones(2, 3)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    results[key] = loss.item().hex()


def batches(loader):
    for (batch,) in loader:
        yield batch * 2


if __name__ == "__main__":
    torch.manual_seed(3)
    nets = [nn.Linear(3, 1) for _ in range(3)]
    results: dict[int, str] = {}
    threads = [threading.Thread(target=train, args=(n, results, k)) for k, n in enumerate(nets)]
    for thread in threads:
        thread.start()
        thread.join()
    print(sorted(results.items()))
    loader = DataLoader(TensorDataset(torch.randn(8, 3)), batch_size=2, shuffle=True, num_workers=2)
    optimizer = torch.optim.Adam(nets[0].parameters())
    for batch in batches(loader):
        loss = nets[0](batch).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        try:
            loss.backward()
        except RuntimeError as error:
            print(str(error)[:60])
    print(loss.item().hex())
