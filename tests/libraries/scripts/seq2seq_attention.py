"""Translation by an encoder and a decoder with additive attention, teacher forcing, and greedy decoding."""
# ruff: noqa

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler, TensorDataset

rng = np.random.default_rng(16)
SOS_token, EOS_token, MAX_LENGTH, hidden = 0, 1, 7, 10
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size, dropout_p=0.0):
        super(EncoderRNN, self).__init__()
        self.embedding = nn.Embedding(input_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, input):
        return self.gru(self.dropout(self.embedding(input)))


class BahdanauAttention(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.Wa, self.Ua, self.Va = (
            nn.Linear(hidden_size, hidden_size),
            nn.Linear(hidden_size, hidden_size),
            nn.Linear(hidden_size, 1),
        )

    def forward(self, query, keys):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys))).squeeze(2).unsqueeze(1)
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights, keys), weights


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size):
        super().__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.attention = BahdanauAttention(hidden_size)
        self.gru = nn.GRU(2 * hidden_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, output_size)

    def forward(self, encoder_outputs, encoder_hidden, target_tensor=None):
        batch_size = encoder_outputs.size(0)
        decoder_input = torch.empty(batch_size, 1, dtype=torch.long, device=device).fill_(SOS_token)
        decoder_hidden, outputs, attentions = encoder_hidden, [], []
        for i in range(MAX_LENGTH):
            embedded = self.embedding(decoder_input)
            context, w = self.attention(decoder_hidden.permute(1, 0, 2), encoder_outputs)
            output, decoder_hidden = self.gru(torch.cat((embedded, context), dim=2), decoder_hidden)
            output = self.out(output)
            outputs.append(output)
            attentions.append(w)
            if target_tensor is not None:
                decoder_input = target_tensor[:, i].unsqueeze(1)
            else:
                _, topi = output.topk(1)
                decoder_input = topi.squeeze(-1).detach()
        outputs = F.log_softmax(torch.cat(outputs, dim=1), dim=-1)
        return outputs, decoder_hidden, torch.cat(attentions, dim=1)


pairs = rng.integers(2, 14, (24, MAX_LENGTH))
pairs[:, -1] = EOS_token
data = TensorDataset(torch.LongTensor(pairs).to(device), torch.LongTensor(pairs[:, ::-1].copy()).to(device))
loader = DataLoader(data, sampler=SequentialSampler(data), batch_size=8)
print(len(RandomSampler(data)), len(loader))
encoder, decoder = EncoderRNN(14, hidden).to(device), AttnDecoderRNN(hidden, 14).to(device)
for p in [*encoder.parameters(), *decoder.parameters()]:
    p.data.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) * 0.4))
encoder_optimizer = optim.Adam(encoder.parameters(), lr=0.02)
decoder_optimizer = optim.Adam(decoder.parameters(), lr=0.02)
criterion = nn.NLLLoss()
for epoch in range(4):
    total = 0
    for input_tensor, target_tensor in loader:
        encoder_optimizer.zero_grad()
        decoder_optimizer.zero_grad()
        outputs, h = encoder(input_tensor)
        decoded, _, _ = decoder(outputs, h, target_tensor)
        loss = criterion(decoded.view(-1, decoded.size(-1)), target_tensor.view(-1))
        loss.backward()
        encoder_optimizer.step()
        decoder_optimizer.step()
        total += loss.item()
    print("%d %.5f" % (epoch, total / len(loader)))
with torch.no_grad():
    decoded, _, attn = decoder(*encoder(torch.LongTensor(pairs[:2])))
    print(decoded.topk(1)[1].squeeze().tolist(), "%.4f" % attn.max().item())
