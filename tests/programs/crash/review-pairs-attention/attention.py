import torch


def pool_words(scores, values, padding=None):
    """Weighted mean of the word vectors of every text."""
    weights = torch.softmax(scores, dim=-1)
    if padding is not None:
        weights.masked_fill_(padding, 0.0)
    return torch.einsum("bl,bld->bd", weights, values)
