import torch
from torch import nn


class UserProfiles(nn.Module):
    """One vector for each user, written by events, read by the scorer."""

    def __init__(self, users, dim):
        super().__init__()
        self.cell = nn.GRUCell(dim, dim)
        self.register_buffer("table", torch.zeros(users, dim))

    def forget(self):
        self.table = torch.zeros_like(self.table)

    def read(self, who):
        return self.table[who]

    def observe(self, who, event):
        who, last = who.unique(return_inverse=True)
        latest = torch.zeros(len(who), dtype=torch.long)
        latest[last] = torch.arange(len(last))
        fresh = self.cell(event[latest], self.table[who])
        self.table = self.table.index_copy(0, who, fresh)
