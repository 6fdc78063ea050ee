import torch


def pool_words(scores, values, padding=None):
    """Weighted mean of the word vectors of every text."""
    if padding is not None:
        scores = scores.masked_fill(padding, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    return torch.einsum("bl,bld->bd", weights, values)
