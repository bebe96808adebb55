"""A siamese network over pairs with shared weights, absolute differences and a Kaiming-style init function."""
# ruff: noqa

import random

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import Dataset

random.seed(0)
rng = np.random.default_rng(7)


class SiameseNetwork(nn.Module):
    def __init__(self):
        super(SiameseNetwork, self).__init__()
        self.resnet = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.AdaptiveAvgPool2d((2, 2)), nn.Flatten())
        self.fc_in_features = 16
        self.fc = nn.Sequential(nn.Linear(self.fc_in_features * 2, 12), nn.ReLU(inplace=True), nn.Linear(12, 1))
        self.sigmoid = nn.Sigmoid()
        self.resnet.apply(self.init_weights)
        self.fc.apply(self.init_weights)

    def init_weights(self, m):
        if isinstance(m, nn.Linear) or type(m) == nn.Conv2d:
            m.weight.data = torch.FloatTensor(rng.standard_normal(tuple(m.weight.shape)) * 0.4)
            m.bias.data.fill_(0.01)

    def forward_once(self, x):
        output = self.resnet(x)
        return output.view(output.size()[0], -1)

    def forward(self, input1, input2):
        output = torch.cat((self.forward_once(input1), self.forward_once(input2)), 1)
        return self.sigmoid(self.fc(output))


class Matcher(Dataset):
    def __init__(self):
        self.data = torch.from_numpy(rng.random((40, 8, 8)).astype("f4"))
        self.targets = torch.from_numpy(rng.integers(0, 3, 40))
        self.grouped = {i: np.where(self.targets == i)[0] for i in range(3)}

    def __len__(self):
        return self.data.shape[0]

    def __getitem__(self, index):
        a = random.randint(0, 2)
        i = self.grouped[a][random.randint(0, self.grouped[a].shape[0] - 1)]
        same = index % 2 == 0
        b = a if same else (a + 1) % 3
        j = self.grouped[b][random.randint(0, self.grouped[b].shape[0] - 1)]
        target = torch.tensor(1 if same else 0, dtype=torch.float)
        return self.data[i].clone().unsqueeze(0), self.data[j].clone().unsqueeze(0), target


model = SiameseNetwork()
optimizer = optim.Adadelta(model.parameters(), lr=1.0)
loader = torch.utils.data.DataLoader(Matcher(), batch_size=10)
criterion = nn.BCELoss()
for epoch in range(3):
    for images_1, images_2, targets in loader:
        optimizer.zero_grad()
        outputs = model(images_1, images_2).squeeze()
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
    correct = torch.where(outputs > 0.5, 1, 0).eq(targets.view_as(outputs)).sum().item()
    print(epoch, "%.5f" % loss.item(), correct)
