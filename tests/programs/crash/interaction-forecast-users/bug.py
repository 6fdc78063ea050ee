import torch
from torch import nn
from profiles import UserProfiles

torch.manual_seed(4)
USERS, ITEMS, EVENTS = 40, 25, 480


def event_log():
    taste = torch.randn(USERS, 4)
    kind = torch.randn(ITEMS, 4)
    who = torch.randint(USERS, (EVENTS,))
    what = torch.distributions.Categorical(logits=(taste[who] @ kind.T) * 1.5).sample()
    return who, what


class Recommender(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.items = nn.Embedding(ITEMS, dim)
        self.profiles = UserProfiles(USERS, dim)

    def forward(self, who, what):
        scores = self.profiles.read(who) @ self.items.weight.T
        return nn.functional.cross_entropy(scores, what)


def epoch(model, optim, who, what, size=40):
    model.profiles.forget()
    total = 0.0
    for w, i in zip(who.split(size), what.split(size)):
        model.profiles.observe(w, model.items(i))
        loss = model(w, i)
        optim.zero_grad()
        loss.backward()
        optim.step()
        total += loss.item()
    return total / (len(who) // size)


who, what = event_log()
model = Recommender()
optim = torch.optim.Adam(model.parameters(), lr=1e-2)
for e in range(3):
    print(f"epoch {e} loss {epoch(model, optim, who, what):.4f}")
