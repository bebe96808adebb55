"""A word-level LSTM language model with truncated backpropagation, tied weights and clipped gradients."""
# ruff: noqa

import math

import numpy as np
import torch
import torch.nn as nn

rng = np.random.default_rng(3)
ntokens, bptt, clip, lr = 30, 7, 0.25, 2.0


class RNNModel(nn.Module):
    def __init__(self, rnn_type, ntoken, ninp, nhid, nlayers, dropout=0.0, tie_weights=False):
        super(RNNModel, self).__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = getattr(nn, rnn_type)(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        if tie_weights:
            self.decoder.weight = self.encoder.weight
        self.rnn_type, self.nhid, self.nlayers, self.ntoken = rnn_type, nhid, nlayers, ntoken

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output)).view(-1, self.ntoken)
        return nn.functional.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        if self.rnn_type == "LSTM":
            return (weight.new_zeros(self.nlayers, bsz, self.nhid), weight.new_zeros(self.nlayers, bsz, self.nhid))
        return weight.new_zeros(self.nlayers, bsz, self.nhid)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous()


def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


def get_batch(source, i):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i : i + seq_len], source[i + 1 : i + 1 + seq_len].view(-1)


data = batchify(torch.from_numpy(rng.integers(0, ntokens, 400)), 4)
for kind in ("LSTM", "GRU", "RNN"):
    model = RNNModel(kind, ntokens, 16, 16, 2, tie_weights=True)
    for p in model.parameters():
        p.data = torch.from_numpy(rng.standard_normal(tuple(p.shape)) * 0.1).to(p.dtype)
    criterion = nn.NLLLoss()
    hidden = model.init_hidden(4)
    total = 0.0
    for batch, i in enumerate(range(0, data.size(0) - 1, bptt)):
        inputs, targets = get_batch(data, i)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(inputs, hidden)
        loss = criterion(output, targets)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        total += loss.item()
    print(kind, "| loss %.4f | ppl %.3f | norm %.4f" % (total / (batch + 1), math.exp(total / (batch + 1)), norm))
print(len(list(model.parameters())), sum(p.numel() for p in model.parameters()))
