import torch
import torch.nn as nn


class LockedDropout(nn.Module):
    def forward(self, x, p=0.3):
        if not self.training or not p:
            return x
        mask = x.new_empty(1, x.size(1), x.size(2)).bernoulli_(1 - p) / (1 - p)
        return x * mask


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid, nlayers, dropout=0.2):
        super().__init__()
        self.encoder = nn.Embedding(ntoken, ninp)
        self.lockdrop = LockedDropout()
        self.rnns = nn.ModuleList(
            nn.LSTM(ninp if l == 0 else nhid, nhid if l != nlayers - 1 else ninp) for l in range(nlayers)
        )
        self.decoder = nn.Linear(ninp, ntoken)
        self.decoder.weight = self.encoder.weight
        self.dropout = dropout
        self.ninp, self.nhid, self.nlayers = ninp, nhid, nlayers

    def forward(self, inp, hidden):
        out = self.lockdrop(self.encoder(inp), self.dropout)
        new_hidden = []
        for l, rnn in enumerate(self.rnns):
            out, h = rnn(out, hidden[l])
            new_hidden.append(h)
            if l != self.nlayers - 1:
                out = self.lockdrop(out, self.dropout)
        return self.decoder(out.view(-1, self.ninp)), new_hidden

    def init_hidden(self, bsz):
        size = lambda l: self.nhid if l != self.nlayers - 1 else self.ninp
        return [(torch.zeros(1, bsz, size(l)), torch.zeros(1, bsz, size(l))) for l in range(self.nlayers)]
