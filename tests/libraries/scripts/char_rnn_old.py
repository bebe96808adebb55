"""A character RNN as it was written for torch 0.3: Variable, FloatTensor, .data[0]-like access, volatile inputs."""
# ruff: noqa

import numpy as np
import torch
import torch.nn as nn
from torch.autograd import Variable

rng = np.random.default_rng(11)
text = "hello world, says the old program"
chars = sorted(set(text))


class CharRNN(nn.Module):
    def __init__(self, input_size, hidden_size, output_size, n_layers=1):
        super(CharRNN, self).__init__()
        self.n_layers, self.hidden_size = n_layers, hidden_size
        self.encoder = nn.Embedding(input_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, n_layers)
        self.decoder = nn.Linear(hidden_size, output_size)

    def forward(self, input, hidden):
        encoded = self.encoder(input.view(1, -1))
        output, hidden = self.gru(encoded.view(1, 1, -1), hidden)
        return self.decoder(output.view(1, -1)), hidden

    def init_hidden(self):
        return Variable(torch.zeros(self.n_layers, 1, self.hidden_size))


def char_tensor(string):
    tensor = torch.zeros(len(string)).long()
    for c in range(len(string)):
        tensor[c] = chars.index(string[c])
    return Variable(tensor)


model = CharRNN(len(chars), 12, len(chars))
for p in model.parameters():
    p.data = torch.FloatTensor(rng.standard_normal(tuple(p.size())) * 0.3)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
criterion = nn.CrossEntropyLoss()
for epoch in range(4):
    hidden = model.init_hidden()
    model.zero_grad()
    loss = 0
    inp, target = char_tensor(text[:-1]), char_tensor(text[1:])
    for c in range(len(inp)):
        output, hidden = model(inp[c], hidden)
        loss += criterion(output, target[c].unsqueeze(0))
    loss.backward()
    nn.utils.clip_grad_norm(model.parameters(), 5)
    optimizer.step()
    print(epoch, "%.4f" % (loss.data.item() / len(inp)))
hidden = model.init_hidden()
found = text[:3]
for c in found[:-1]:
    _, hidden = model(Variable(char_tensor(c).data, volatile=True), hidden)
for _ in range(12):
    output, hidden = model(char_tensor(found[-1]), hidden)
    found += chars[output.data.view(-1).div(0.8).exp().max(0)[1].item()]
print(found)
x = Variable(torch.Tensor([[1, 2], [3, 4]]), requires_grad=True)
y = x * x
y.backward(torch.ones(2, 2))
print(x.grad.data, x.data.type(), isinstance(x.data, torch.FloatTensor), torch.LongTensor(2, 3).size())
print(x.data.new(2, 2).zero_(), x.data.new([1.0, 2.0]), torch.ByteTensor([1, 0, 1]).type("torch.LongTensor"))
