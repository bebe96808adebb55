"""Pairs of sentences through a bidirectional LSTM over packed sequences, a projection and several checks on the way."""
# ruff: noqa

import numpy as np
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

rng = np.random.default_rng(8)


class Bottle(nn.Module):
    def forward(self, input):
        if len(input.size()) <= 2:
            return super(Bottle, self).forward(input)
        size = input.size()[:2]
        out = super(Bottle, self).forward(input.view(size[0] * size[1], -1))
        return out.view(size[0], size[1], -1)


class Linear(Bottle, nn.Linear):
    pass


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(input_size=6, hidden_size=5, num_layers=2, bidirectional=True)

    def forward(self, inputs, lengths):
        packed = pack_padded_sequence(inputs, lengths, enforce_sorted=False)
        outputs, (ht, ct) = self.rnn(packed)
        padded, n = pad_packed_sequence(outputs)
        print(tuple(padded.shape), n.tolist(), "%.4f" % padded.sum().item())
        return ht[-2:].transpose(0, 1).contiguous().view(inputs.shape[1], -1)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8, padding_idx=0)
        self.projection = Linear(8, 6)
        self.encoder = Encoder()
        self.out = nn.Sequential(Linear(20, 12), nn.ReLU(), nn.Dropout(p=0.0), Linear(12, 3))

    def forward(self, a, la, b, lb):
        first = self.encoder(torch.relu(self.projection(self.embed(a))), la)
        second = self.encoder(torch.relu(self.projection(self.embed(b))), lb)
        return self.out(torch.cat([first, second], 1))


model = Classifier()
for p in model.parameters():
    p.data.copy_(torch.from_numpy(rng.standard_normal(tuple(p.size()))).mul(0.3))
model.embed.weight.data[0].zero_()


def sentences(lengths):
    return pad_sequence([torch.from_numpy(rng.integers(1, 20, int(n))) for n in lengths], padding_value=0)


la, lb = torch.tensor([3, 7, 5]), torch.tensor([6, 2, 4])
a, b, y = sentences(la), sentences(lb), torch.LongTensor([0, 2, 1])
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(3):
    optimizer.zero_grad()
    answer = model(a, la, b, lb)
    loss = nn.CrossEntropyLoss()(answer, y)
    loss.backward()
    optimizer.step()
    print("%.5f" % loss.item(), (torch.max(answer, 1)[1].view(y.size()) == y).sum().item(), model.embed.weight.grad[0])
