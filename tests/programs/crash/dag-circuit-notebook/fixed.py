# %%
import torch
from torch import nn

torch.manual_seed(2)

# %%
# a layered circuit: gates of level k read gates of lower levels
levels = [torch.arange(0, 12), torch.arange(12, 22), torch.arange(22, 30), torch.arange(30, 36)]
fan_in = {}
for k in range(1, len(levels)):
    below = torch.cat(levels[:k])
    fan_in[k] = torch.stack([below[torch.randperm(len(below))[:3]] for _ in levels[k]])
kind = torch.randint(0, 3, (36,))


# %%
def simulate(bits):
    out = torch.zeros(bits.shape[0], 36)
    out[:, levels[0]] = bits
    for k in range(1, len(levels)):
        x = out[:, fan_in[k]]
        gate = kind[levels[k]]
        out[:, levels[k]] = torch.where(gate == 0, x.prod(-1), torch.where(gate == 1, x.amax(-1), 1 - x[..., 0]))
    return out


# %%
embed = nn.Embedding(3, 16)
read_bit = nn.Linear(1, 16)
key, query, cell = nn.Linear(16, 16), nn.Linear(16, 16), nn.GRUCell(16, 16)
readout = nn.Linear(16, 1)
modules = nn.ModuleList([embed, read_bit, key, query, cell, readout])
opt = torch.optim.Adam(modules.parameters(), lr=5e-3)

# %%
for step in range(24):
    bits = torch.randint(0, 2, (16, 12)).float()
    truth = simulate(bits)
    depth = 0 if step < 6 else min(len(levels) - 1, 1 + step // 8)
    h = embed(kind).expand(16, 36, 16).clone()
    h[:, levels[0]] = read_bit(bits.unsqueeze(-1))
    for k in range(1, depth + 1):
        keys = key(h)
        near = keys[:, fan_in[k]]
        ask = query(h[:, levels[k]]).unsqueeze(2)
        att = (near * ask).sum(-1).softmax(-1).unsqueeze(-1)
        msg = (att * near).sum(2)
        new = cell(msg.flatten(0, 1), h[:, levels[k]].flatten(0, 1)).view(16, -1, 16)
        h = h.index_copy(1, levels[k], new)
    shown = torch.cat(levels[: depth + 1])
    loss = nn.functional.binary_cross_entropy_with_logits(readout(h[:, shown]).squeeze(-1), truth[:, shown])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 3 == 0:
        print(f"step {step:2d} depth {depth} loss {loss.item():.4f}")
