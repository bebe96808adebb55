"""Sub-pixel upscaling with orthogonal weights replaced by fixed ones, PSNR, and a checkpoint that is read again."""
# ruff: noqa

import math
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.init as init
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset

rng = np.random.default_rng(6)


class Net(nn.Module):
    def __init__(self, upscale_factor):
        super(Net, self).__init__()
        self.relu = nn.ReLU()
        self.conv1 = nn.Conv2d(1, 8, (5, 5), (1, 1), (2, 2))
        self.conv2 = nn.Conv2d(8, upscale_factor**2, (3, 3), (1, 1), (1, 1))
        self.pixel_shuffle = nn.PixelShuffle(upscale_factor)
        self._initialize_weights()

    def forward(self, x):
        return self.pixel_shuffle(self.conv2(self.relu(self.conv1(x))))

    def _initialize_weights(self):
        init.orthogonal_(self.conv1.weight, init.calculate_gain("relu"))
        for p in self.parameters():
            p.data = torch.from_numpy(rng.standard_normal(tuple(p.shape)).astype(np.float32) * 0.2)


class Pictures(Dataset):
    def __init__(self, n):
        self.large = rng.random((n, 1, 12, 12)).astype(np.float32)

    def __getitem__(self, i):
        large = torch.from_numpy(self.large[i])
        return nn.functional.avg_pool2d(large, 2), large

    def __len__(self):
        return len(self.large)


model = Net(upscale_factor=2)
criterion = nn.MSELoss()
optimizer = optim.Adam(model.parameters(), lr=0.01)
loader = DataLoader(dataset=Pictures(12), num_workers=0, batch_size=5, shuffle=False, drop_last=False)
for epoch in range(3):
    epoch_loss = 0
    for iteration, batch in enumerate(loader, 1):
        input, target = batch[0], batch[1]
        optimizer.zero_grad()
        loss = criterion(model(input), target)
        epoch_loss += loss.item()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        psnr = sum(10 * math.log10(1 / criterion(model(a), b).item()) for a, b in loader) / len(loader)
    print("Epoch {} Avg. Loss: {:.4f} PSNR: {:.4f} dB".format(epoch, epoch_loss / len(loader), psnr))
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model_epoch.pth")
    torch.save(model, path)
    again = torch.load(path, weights_only=False)
x = next(iter(loader))[0]
print(torch.equal(again(x), model(x)), type(again).__name__)
