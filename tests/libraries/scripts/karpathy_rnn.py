"""A vanilla RNN written out with tensors alone: no modules, gradients by autograd, Adagrad by hand."""
# ruff: noqa

import numpy as np
import torch

rng = np.random.default_rng(12)
data = "the quick brown fox jumps over the lazy dog " * 3
chars = sorted(list(set(data)))
vocab_size, hidden_size, seq_length, learning_rate = len(chars), 20, 12, 1e-1
ix = {ch: i for i, ch in enumerate(chars)}
t = lambda *s: (torch.from_numpy(rng.standard_normal(s)) * 0.1).requires_grad_()
Wxh, Whh, Why = t(hidden_size, vocab_size), t(hidden_size, hidden_size), t(vocab_size, hidden_size)
bh, by = torch.zeros(hidden_size, 1, dtype=torch.float64, requires_grad=True), t(vocab_size, 1)
params = [Wxh, Whh, Why, bh, by]
mem = [torch.zeros_like(p) for p in params]
hprev, p, smooth = torch.zeros(hidden_size, 1, dtype=torch.float64), 0, -np.log(1.0 / vocab_size) * seq_length
for n in range(12):
    if p + seq_length + 1 >= len(data):
        hprev, p = torch.zeros_like(hprev), 0
    inputs = [ix[ch] for ch in data[p : p + seq_length]]
    targets = [ix[ch] for ch in data[p + 1 : p + seq_length + 1]]
    h, loss = hprev, 0
    for a, b in zip(inputs, targets):
        x = torch.eye(vocab_size, dtype=torch.float64)[:, a : a + 1]
        h = torch.tanh(Wxh @ x + Whh.mm(h) + bh)
        probs = torch.exp(Why @ h + by)
        loss = loss - torch.log((probs / probs.sum())[b, 0])
    grads = torch.autograd.grad(loss, params)
    hprev = h.detach()
    for param, dparam, m in zip(params, grads, mem):
        dparam = dparam.clamp(-5, 5)
        m += dparam * dparam
        with torch.no_grad():
            param -= learning_rate * dparam / torch.sqrt(m + 1e-8)
    smooth = smooth * 0.999 + loss.item() * 0.001
    if n % 3 == 0:
        print("iter %d, loss: %f %f" % (n, smooth, loss))
    p += seq_length
with torch.no_grad():
    found, x = [], 0
    for _ in range(20):
        h = torch.tanh(Wxh[:, [x]] + Whh @ h + bh)
        x = int((Why @ h + by).ravel().argmax())
        found.append(chars[x])
print(repr("".join(found)))
