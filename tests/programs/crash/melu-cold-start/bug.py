import argparse

import torch
from torch.func import functional_call

from model import UserPreferenceEstimator


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--meta-epochs", type=int, default=4)
    p.add_argument("--tasks-per-batch", type=int, default=8)
    p.add_argument("--inner-steps", type=int, default=2)
    p.add_argument("--inner-lr", type=float, default=0.05)
    p.add_argument("--outer-lr", type=float, default=2e-3)
    p.add_argument("--pretrain-steps", type=int, default=60)
    p.add_argument("--seed", type=int, default=10)
    return p.parse_args()


class Users:
    """Each user is a task: 10 rated items to adapt on and 5 to be judged on."""

    def __init__(self, n_users, n_items=80, n_genres=6):
        self.items = (torch.rand(n_items, n_genres) < 0.35).float()
        self.age = torch.randint(0, 5, (n_users,))
        self.job = torch.randint(0, 8, (n_users,))
        self.pref = torch.randn(n_users, n_genres) + 0.5 * torch.randn(8, n_genres)[self.job]

    def task(self, u):
        idx = torch.randperm(len(self.items))[:15]
        g = self.items[idx]
        y = 3 + (g @ self.pref[u]).clamp(-2, 2)
        side = (self.age[u].expand(15), self.job[u].expand(15))
        cut = lambda a, b: ((g[a:b], side[0][a:b], side[1][a:b]), y[a:b])
        return cut(0, 10), cut(10, 15)


def adapt(model, support, args):
    x, y = support
    weights = dict(model.named_parameters())
    for _ in range(args.inner_steps):
        loss = torch.mean((functional_call(model, weights, x) - y) ** 2)
        grads = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
        weights = {k: w - args.inner_lr * g for (k, w), g in zip(weights.items(), grads)}
    return weights


def main():
    args = get_args()
    torch.manual_seed(args.seed)
    users = Users(48)
    model = UserPreferenceEstimator()
    opt = torch.optim.Adam(model.parameters(), lr=args.outer_lr)

    for step in range(args.pretrain_steps):
        loss = model.catalogue_loss(users.items)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(f"catalogue step {step} loss {loss.item():.3f}")

    for epoch in range(args.meta_epochs):
        for batch in torch.randperm(len(users.age)).split(args.tasks_per_batch):
            meta_loss = 0.0
            for u in batch.tolist():
                support, (xq, yq) = users.task(u)
                fast = adapt(model, support, args)
                meta_loss = meta_loss + torch.mean((functional_call(model, fast, xq) - yq) ** 2)
            meta_loss = meta_loss / len(batch)
            opt.zero_grad()
            meta_loss.backward()
            opt.step()
        print(f"meta epoch {epoch} query mse {meta_loss.item():.3f}")


if __name__ == "__main__":
    main()
