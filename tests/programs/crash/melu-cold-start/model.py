import torch
import torch.nn as nn
import torch.nn.functional as F


class UserPreferenceEstimator(nn.Module):
    """Item/user embeddings followed by decision layers, MeLU style."""

    def __init__(self, n_genres=6, n_ages=5, n_jobs=8, dim=8, hidden=32):
        super().__init__()
        self.genre_emb = nn.Linear(n_genres, dim, bias=False)
        self.age_emb = nn.Embedding(n_ages, dim)
        self.job_emb = nn.Embedding(n_jobs, dim)
        self.fc1 = nn.Linear(3 * dim, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.rating = nn.Linear(hidden, 1)
        # only for pre-training on the catalogue
        self.genre_head = nn.Linear(dim, n_genres)

    def forward(self, genres, age, job):
        u = torch.cat([self.age_emb(age), self.job_emb(job)], -1)
        x = torch.cat([self.genre_emb(genres), u], -1)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.rating(x).squeeze(-1)

    def catalogue_loss(self, genres):
        logits = self.genre_head(self.genre_emb(genres))
        return F.binary_cross_entropy_with_logits(logits, genres)
