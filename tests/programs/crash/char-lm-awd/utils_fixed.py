import torch


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous()


def get_batch(source, i, bptt):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i:i + seq_len], source[i + 1:i + 1 + seq_len].reshape(-1)


def repackage_hidden(h):
    """Wraps hidden states in new Tensors, to detach them from their history."""
    if isinstance(h, torch.Tensor):
        return h.detach()
    elif isinstance(h, (tuple, list)):
        return type(h)(repackage_hidden(v) for v in h)
    return h


class Corpus:
    text = (
        "the boy walked to the river and the river carried the boat to the sea "
        "where the old man was waiting with a lamp and a long story to tell "
    ) * 40

    def __init__(self):
        self.vocab = sorted(set(self.text))
        stoi = {c: i for i, c in enumerate(self.vocab)}
        self.data = torch.tensor([stoi[c] for c in self.text])
