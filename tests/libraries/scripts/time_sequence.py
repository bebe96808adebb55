"""Sine waves continued by LSTM cells in double precision, trained with LBFGS and a closure."""
# ruff: noqa

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim

rng = np.random.default_rng(5)


class Sequence(nn.Module):
    def __init__(self):
        super(Sequence, self).__init__()
        self.lstm1 = nn.LSTMCell(1, 7)
        self.lstm2 = nn.LSTMCell(7, 7)
        self.linear = nn.Linear(7, 1)

    def forward(self, input, future=0):
        outputs = []
        h_t = torch.zeros(input.size(0), 7, dtype=torch.double)
        c_t = torch.zeros(input.size(0), 7, dtype=torch.double)
        h_t2 = torch.zeros(input.size(0), 7, dtype=torch.double)
        c_t2 = torch.zeros(input.size(0), 7, dtype=torch.double)
        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        for _ in range(future):
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        return torch.cat(outputs, dim=1)


x = np.arange(24).reshape(1, -1) + rng.integers(-40, 40, 6).reshape(-1, 1)
data = np.sin(x / 10.0).astype("float64")
input, target = torch.from_numpy(data[2:, :-1]), torch.from_numpy(data[2:, 1:])
test_input, test_target = torch.from_numpy(data[:2, :-1]), torch.from_numpy(data[:2, 1:])
seq = Sequence()
seq.double()
for p in seq.parameters():
    nn.init.constant_(p, 0)
    p.data += torch.from_numpy(rng.standard_normal(tuple(p.shape)) * 0.3)
criterion = nn.MSELoss()
optimizer = optim.LBFGS(seq.parameters(), lr=0.8, max_iter=4)
for i in range(3):
    print("STEP: ", i)

    def closure():
        optimizer.zero_grad()
        loss = criterion(seq(input), target)
        print("loss: %.9f" % loss.item())
        loss.backward()
        return loss

    optimizer.step(closure)
    with torch.no_grad():
        pred = seq(test_input, future=5)
        print("test loss: %.9f" % criterion(pred[:, :-5], test_target).item(), pred.detach().numpy().shape)
