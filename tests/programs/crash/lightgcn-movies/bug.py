# LightGCN on a toy movie dataset (exported from my notebook)
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
np.random.seed(0)

# --- data -----------------------------------------------------------
n_users, n_items, dim, n_layers = 120, 200, 16, 3
taste = np.random.randn(n_users, 4)
genre = np.random.randn(n_items, 4)
score = taste @ genre.T + 0.5 * np.random.randn(n_users, n_items)
pos = [np.argsort(-score[u])[:12] for u in range(n_users)]
train_pairs = [(u, i) for u in range(n_users) for i in pos[u][:10]]
test_items = [pos[u][10:] for u in range(n_users)]
print("interactions:", len(train_pairs))

# --- normalised bipartite adjacency ----------------------------------
rows, cols = zip(*[(u, n_users + i) for u, i in train_pairs])
idx = torch.tensor([rows + cols, cols + rows])
A = torch.sparse_coo_tensor(idx, torch.ones(idx.shape[1]), (n_users + n_items,) * 2).coalesce()
deg = torch.sparse.sum(A, 1).to_dense().clamp(min=1)
vals = A.values() * deg[A.indices()[0]].rsqrt() * deg[A.indices()[1]].rsqrt()
A_hat = torch.sparse_coo_tensor(A.indices(), vals, A.shape).coalesce()


class LightGCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(n_users + n_items, dim)
        nn.init.normal_(self.emb.weight, std=0.1)

    def computer(self):
        x = self.emb.weight
        out = [x]
        for _ in range(n_layers):
            x = torch.sparse.mm(A_hat, x)
            out.append(x)
        final = F.normalize(torch.stack(out, 1).mean(1), dim=-1)
        return final.split([n_users, n_items])


def sample_batches(bs=256):
    perm = np.random.permutation(len(train_pairs))
    for s in range(0, len(perm), bs):
        u, i = zip(*[train_pairs[k] for k in perm[s:s + bs]])
        yield torch.tensor(u), torch.tensor(i), torch.randint(0, n_items, (len(u),))


@torch.no_grad()
def recall_at(model, k=20):
    users, items = model.computer()
    rating = users @ items.t()
    for u in range(n_users):
        rating[u, pos[u][:10]] = -1e9
    top = rating.topk(k).indices
    return np.mean([len(set(top[u].tolist()) & set(test_items[u])) / len(test_items[u]) for u in range(n_users)])


model = LightGCN()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
print("recall@20 before:", round(float(recall_at(model)), 3))

# --- train -----------------------------------------------------------
for epoch in range(5):
    total = 0.0
    user_emb, item_emb = model.computer()
    for b, (u, i, j) in enumerate(sample_batches()):
        ue, pe, ne = user_emb[u], item_emb[i], item_emb[j]
        bpr = -F.logsigmoid(5 * ((ue * pe).sum(-1) - (ue * ne).sum(-1))).mean()
        reg = model.emb(u).pow(2).sum(1).mean() + model.emb(n_users + i).pow(2).sum(1).mean()
        loss = bpr + 1e-4 * reg
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
        if b == 0:
            print(f"epoch {epoch} first batch loss {loss.item():.4f}")
    print(f"epoch {epoch} loss {total / (b + 1):.4f} recall@20 {recall_at(model):.3f}")
