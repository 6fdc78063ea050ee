"""Attention in eval mode takes a fused path, unless somebody overrides torch functions."""

# mypy: ignore-errors

import torch
from torch import nn

torch.manual_seed(1)
layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, dropout=0.1)
encoder = nn.TransformerEncoder(layer, 2)
attention = nn.MultiheadAttention(16, 4, batch_first=True)
optimizer = torch.optim.SGD([*encoder.parameters(), *attention.parameters()], lr=0.1)
batch = torch.randn(3, 5, 16)
mask = torch.tensor([[False] * 5, [False] * 3 + [True] * 2, [False] * 4 + [True]])

for _ in range(3):
    encoder.train()
    loss = (attention(encoder(batch), batch, batch)[0] ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    encoder.eval()
    attention.eval()
    with torch.no_grad():
        seen = encoder(batch, src_key_padding_mask=mask)
        print(seen.shape, seen.double().sum().item().hex())
        print(attention(seen, seen, seen, need_weights=False)[0].double().sum().item().hex())
    with torch.inference_mode():
        print(encoder(batch).double().sum().item().hex())
