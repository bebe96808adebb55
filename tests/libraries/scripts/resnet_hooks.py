"""A residual network with hooks, frozen parts, weights by Kaiming replaced, exponential averages and a summary."""
# ruff: noqa

import copy
import os
from collections import OrderedDict
from functools import partial

import numpy as np
import torch
import torch.backends.cudnn as cudnn
import torch.nn as nn
import torch.utils.model_zoo as model_zoo
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

cudnn.benchmark = True
rng = np.random.default_rng(15)
print(callable(model_zoo.load_url), os.path.basename("a/b"))


def conv3x3(cin, cout, stride=1):
    return nn.Conv2d(cin, cout, kernel_size=3, stride=stride, padding=1, bias=False)


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inplanes, planes, stride=1, downsample=None, norm=partial(nn.BatchNorm2d, eps=1e-4)):
        super(BasicBlock, self).__init__()
        self.conv1, self.bn1 = conv3x3(inplanes, planes, stride), norm(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2, self.bn2 = conv3x3(planes, planes), norm(planes)
        self.downsample = downsample

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inplanes = 4
        self.conv1 = nn.Conv2d(3, 4, 7, 2, 3, bias=False)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self._make_layer(BasicBlock, 4, 2)
        self.layer2 = self._make_layer(BasicBlock, 8, 1, stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(8, 5)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.constant_(m.weight, 1)

    def _make_layer(self, block, planes, blocks, stride=1):
        downsample = None
        if stride != 1 or self.inplanes != planes * block.expansion:
            downsample = nn.Sequential(
                OrderedDict(
                    [("0", nn.Conv2d(self.inplanes, planes, 1, stride, bias=False)), ("1", nn.BatchNorm2d(planes))]
                )
            )
        layers = [block(self.inplanes, planes, stride, downsample)]
        self.inplanes = planes * block.expansion
        layers += [block(self.inplanes, planes) for _ in range(1, blocks)]
        return nn.Sequential(*layers)

    def forward(self, x):
        x = self.maxpool(self.conv1(x))
        x = self.layer2(self.layer1(x))
        return self.fc(torch.flatten(self.avgpool(x), 1))


net = ResNet()
state = OrderedDict()
for k, v in net.state_dict().items():
    if v.dtype.is_floating_point and "running" not in k and "bn" not in k:
        v = torch.from_numpy(rng.standard_normal(tuple(v.shape)) * 0.3).to(v)
    state[k] = v
missing, unexpected = net.load_state_dict(state, strict=False)
print(missing, unexpected, len(state))
seen = {}


def hook(name, module, input, output):
    seen[name] = (type(module).__name__, tuple(input[0].shape), round(float(output.mean()), 5))


handles = [m.register_forward_hook(partial(hook, n)) for n, m in net.named_modules() if isinstance(m, nn.Conv2d)]
x = torch.as_tensor(rng.standard_normal((4, 3, 20, 20)), dtype=torch.float32)
target = torch.tensor([0, 1, 4, 2])
for p in net.layer1.parameters():
    p.requires_grad_(False)
ema = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.9))
before = copy.deepcopy(net.state_dict())
optimizer = torch.optim.SGD(filter(lambda p: p.requires_grad, net.parameters()), 0.1, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "min", factor=0.5, patience=1)
for step in range(4):
    loss = nn.CrossEntropyLoss()(net(x), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update_parameters(net)
    scheduler.step(loss.item())
    print(step, "%.5f" % loss.item(), optimizer.param_groups[0]["lr"])
for h in handles:
    h.remove()
print(seen)
print([k for k, v in net.state_dict().items() if torch.equal(v, before[k])])
net.eval()
print(torch.softmax(net(x), 1).max(1).values.detach(), "%.4f" % ema.module.fc.weight.sum().item())
