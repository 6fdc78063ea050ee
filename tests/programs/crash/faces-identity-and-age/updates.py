import torch


class Updater:
    """Two optimisers: identity trains body and head, age trains the slow group."""

    def __init__(self, model):
        shared = list(model.body.parameters())
        self.identity_opt = torch.optim.SGD([*shared, *model.identity.parameters()], lr=0.1)
        self.age_opt = torch.optim.Adam([*shared, *model.age.parameters()], lr=1e-3)

    def apply(self, losses):
        self.identity_opt.zero_grad()
        losses["identity"].backward(retain_graph=True)
        self.identity_opt.step()
        self.age_opt.zero_grad()
        losses["age"].backward()
        self.age_opt.step()
