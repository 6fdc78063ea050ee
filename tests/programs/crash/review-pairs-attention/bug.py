import torch
from torch import nn
from attention import pool_words
from torch.nn.utils.rnn import pad_sequence

torch.manual_seed(41)
WORDS = 60


def reviews(n=400):
    """The first half was cut to 12 words by the old export."""
    good = torch.randint(2, (n,))
    texts = []
    for i in range(n):
        length = 12 if i < n // 2 else int(torch.randint(6, 20, ()))
        low, high = (0, 40) if good[i] else (20, 60)
        texts.append(torch.randint(low, high, (length,)))
    return texts, good.float()


class Rater(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.words = nn.Embedding(WORDS + 1, dim, padding_idx=WORDS)
        self.score = nn.Linear(dim, 1)
        self.rate = nn.Linear(dim, 1)

    def forward(self, ids):
        h = self.words(ids)
        padding = ids == WORDS
        context = pool_words(self.score(h).squeeze(-1), h, padding if padding.any() else None)
        return self.rate(context).squeeze(-1)


texts, good = reviews()
model = Rater()
optim = torch.optim.Adam(model.parameters(), lr=1e-2)
for start in range(0, len(texts), 20):
    ids = pad_sequence(texts[start:start + 20], batch_first=True, padding_value=WORDS)
    loss = nn.functional.binary_cross_entropy_with_logits(model(ids), good[start:start + 20])
    optim.zero_grad()
    loss.backward()
    optim.step()
    if start % 60 == 0:
        print(f"review {start} loss {loss.item():.4f}")
