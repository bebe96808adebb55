"""The transformer network of fast neural style: reflection padding, instance norm, upsampling, Gram matrices."""
# ruff: noqa

import numpy as np
import torch
from torch.optim import Adam

rng = np.random.default_rng(9)


class ConvLayer(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride):
        super(ConvLayer, self).__init__()
        self.reflection_pad = torch.nn.ReflectionPad2d(kernel_size // 2)
        self.conv2d = torch.nn.Conv2d(in_channels, out_channels, kernel_size, stride)

    def forward(self, x):
        return self.conv2d(self.reflection_pad(x))


class ResidualBlock(torch.nn.Module):
    def __init__(self, channels):
        super(ResidualBlock, self).__init__()
        self.conv1 = ConvLayer(channels, channels, kernel_size=3, stride=1)
        self.in1 = torch.nn.InstanceNorm2d(channels, affine=True)
        self.relu = torch.nn.ReLU()

    def forward(self, x):
        return self.relu(self.in1(self.conv1(x))) + x


class UpsampleConvLayer(torch.nn.Module):
    def __init__(self, cin, cout, kernel_size, stride, upsample=None):
        super().__init__()
        self.upsample = upsample
        self.reflection_pad = torch.nn.ReflectionPad2d(kernel_size // 2)
        self.conv2d = torch.nn.Conv2d(cin, cout, kernel_size, stride)

    def forward(self, x):
        if self.upsample:
            x = torch.nn.functional.interpolate(x, mode="nearest", scale_factor=self.upsample)
        return self.conv2d(self.reflection_pad(x))


class TransformerNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.down = ConvLayer(3, 6, 3, 2)
        self.norm = torch.nn.InstanceNorm2d(6, affine=True)
        self.res = ResidualBlock(6)
        self.up = UpsampleConvLayer(6, 3, 3, 1, upsample=2)

    def forward(self, X):
        return self.up(self.res(torch.relu(self.norm(self.down(X)))))


def gram_matrix(y):
    (b, ch, h, w) = y.size()
    features = y.view(b, ch, w * h)
    return features.bmm(features.transpose(1, 2)) / (ch * h * w)


def normalize_batch(batch):
    mean = batch.new_tensor([0.485, 0.456, 0.406]).view(-1, 1, 1)
    std = batch.new_tensor([0.229, 0.224, 0.225]).view(-1, 1, 1)
    return (batch.div_(255.0) - mean) / std


net = TransformerNet()
with torch.no_grad():
    for p in net.parameters():
        p.set_(torch.from_numpy(rng.standard_normal(tuple(p.shape)).astype(np.float32) * 0.3))
optimizer = Adam(net.parameters(), 1e-2)
mse = torch.nn.MSELoss()
style = gram_matrix(torch.from_numpy(rng.standard_normal((2, 3, 8, 8)).astype(np.float32)))
for i in range(4):
    x = torch.from_numpy(rng.integers(0, 256, (2, 3, 8, 8))).float()
    optimizer.zero_grad()
    y = net(x)
    content = 1e-3 * mse(normalize_batch(y.clone()), normalize_batch(x.clone()))
    loss = content + mse(gram_matrix(y), style[: len(y), :, :])
    loss.backward()
    optimizer.step()
    print("content: {:.6f}\ttotal: {:.6f}".format(content.item(), loss.item()))
print(sorted(net.state_dict().keys()))
