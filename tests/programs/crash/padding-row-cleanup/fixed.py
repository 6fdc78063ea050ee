import torch
from torch import nn

torch.manual_seed(44)
PAD, WORDS = 0, 30


class BagOfWords(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.table = nn.Embedding(WORDS, dim)
        self.out = nn.Linear(dim, 1)

    def forward(self, ids):
        used = (ids != PAD).float().unsqueeze(-1)
        return self.out((self.table(ids) * used).sum(1) / used.sum(1)).squeeze(-1)

    def tidy(self, limit=3.0):
        """Padding stays at zero and no word grows beyond the limit."""
        with torch.no_grad():
            self.table.weight[PAD].zero_()
            length = self.table.weight.norm(dim=1, keepdim=True).clamp(min=limit)
            self.table.weight.mul_(limit / length)


def sentences(n=300):
    ids = torch.randint(1, WORDS, (n, 9))
    ids[torch.rand(n, 9) < 0.2] = PAD
    ids[:, 0] = torch.randint(1, WORDS, (n,))
    return ids, ((ids > 15).sum(1) > 3).float()


ids, label = sentences()
model = BagOfWords()
optim = torch.optim.Adagrad(model.parameters(), lr=0.1)
for epoch in range(4):
    for idx in torch.randperm(len(ids)).split(50):
        loss = nn.functional.binary_cross_entropy_with_logits(model(ids[idx]), label[idx])
        optim.zero_grad()
        loss.backward()
        optim.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
    model.tidy()
