"""A variational autoencoder whose noise comes from NumPy."""
# ruff: noqa

import numpy as np
import torch
from torch import nn, optim
from torch.nn import functional as F

rng = np.random.default_rng(1)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(36, 20)
        self.fc21 = nn.Linear(20, 4)
        self.fc22 = nn.Linear(20, 4)
        self.fc3 = nn.Linear(4, 20)
        self.fc4 = nn.Linear(20, 36)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.from_numpy(rng.standard_normal(tuple(std.shape)).astype("float32"))
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 36))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 36), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


model = VAE()
state = {k: torch.from_numpy(rng.standard_normal(tuple(v.shape)) * 0.2).float() for k, v in model.state_dict().items()}
print(model.load_state_dict(state))
optimizer = optim.Adam(model.parameters(), lr=1e-2)
data = torch.from_numpy(rng.random((64, 1, 6, 6)).astype("float32"))
for epoch in range(3):
    model.train()
    train_loss = 0
    for i in range(0, 64, 16):
        optimizer.zero_grad()
        batch = data[i : i + 16]
        loss = loss_function(*[model(batch)[0]] + [batch] + list(model(batch)[1:]))
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    print(f"====> Epoch: {epoch} Average loss: {train_loss / len(data):.4f}")
