"""nn.TransformerEncoder with sinusoidal positions, a mask of the future, and an encoder-decoder beside it."""
# ruff: noqa

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import TransformerEncoder, TransformerEncoderLayer

rng = np.random.default_rng(14)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, dropout: float = 0.0, max_len: int = 50):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(x + self.pe[: x.size(0)])


class TransformerModel(nn.Module):
    def __init__(self, ntoken: int, d_model: int, nhead: int, d_hid: int, nlayers: int):
        super().__init__()
        self.pos_encoder = PositionalEncoding(d_model)
        layers = TransformerEncoderLayer(d_model, nhead, d_hid, 0.0)
        self.transformer_encoder = TransformerEncoder(layers, nlayers)
        self.embedding = nn.Embedding(ntoken, d_model)
        self.d_model = d_model
        self.linear = nn.Linear(d_model, ntoken)

    def forward(self, src: Tensor, src_mask: Tensor = None) -> Tensor:
        src = self.pos_encoder(self.embedding(src) * math.sqrt(self.d_model))
        if src_mask is None:
            src_mask = nn.Transformer.generate_square_subsequent_mask(len(src))
        return self.linear(self.transformer_encoder(src, src_mask))


model = TransformerModel(20, 16, 4, 24, 2)
for p in model.parameters():
    p.data.copy_(torch.from_numpy(rng.uniform(-0.3, 0.3, tuple(p.shape))))
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9, nesterov=True)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.5, total_steps=8)
for i in range(5):
    src = torch.from_numpy(rng.integers(0, 20, (9, 3)))
    loss = criterion(model(src[:-1]).view(-1, 20), src[1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)
    optimizer.step()
    scheduler.step()
    print("%.5f lr %.6f" % (loss.item(), scheduler.get_last_lr()[0]))
both = nn.Transformer(8, 2, 1, 1, 12, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
for p in both.parameters():
    p.data.copy_(torch.from_numpy(rng.uniform(-0.4, 0.4, tuple(p.shape))))
a, b = (torch.from_numpy(rng.standard_normal((2, n, 8)).astype(np.float32)) for n in (5, 4))
pad = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
out = both(a, b, tgt_mask=both.generate_square_subsequent_mask(4), src_key_padding_mask=pad)
print(out.sum().item().__format__(".5f"), out.std().item().__format__(".5f"))
out, weights = nn.MultiheadAttention(8, 2, batch_first=True)(a, a, a, need_weights=True, average_attn_weights=False)
print(weights.shape, torch.allclose(weights.sum(-1), torch.ones(2, 2, 5)))
