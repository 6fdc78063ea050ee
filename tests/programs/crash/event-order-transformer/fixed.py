import torch
from torch import nn
from layers_fixed import OrderedEmbedding

torch.manual_seed(0)


class Tagger(nn.Module):
    def __init__(self, vocab=12, dim=32, length=20):
        super().__init__()
        self.embed = OrderedEmbedding(vocab, dim, length)
        self.block = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.0, batch_first=True)
        self.head = nn.Linear(dim, 2)

    def forward(self, tokens):
        return self.head(self.block(self.embed(tokens)))


def batch(n=32, length=20):
    tokens = torch.randint(12, (n, length))
    repeat = torch.zeros(n, length, dtype=torch.long)
    repeat[:, 1:] = (tokens[:, 1:] > tokens[:, :-1]).long()
    return tokens, repeat


model = Tagger()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=40)
for step in range(40):
    tokens, label = batch()
    logits = model(tokens)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), label.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.4f}")
