"""The tutorial of many ways to fit a polynomial: by hand, autograd, a Function of one's own, modules, optimizers."""
# ruff: noqa

import math

import torch

dtype = torch.float
x = torch.linspace(-math.pi, math.pi, 200, dtype=dtype)
y = torch.sin(x)


class LegendrePolynomial3(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input**3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input**2 - 1)


a = torch.full((), 0.0, dtype=dtype, requires_grad=True)
b = torch.full((), -1.0, dtype=dtype, requires_grad=True)
c = torch.full((), 0.0, dtype=dtype, requires_grad=True)
d = torch.full((), 0.3, dtype=dtype, requires_grad=True)
for t in range(60):
    P3 = LegendrePolynomial3.apply
    y_pred = a + b * P3(c + d * x)
    loss = (y_pred - y).pow(2).sum()
    if t % 20 == 19:
        print(t, "%.3f" % loss.item())
    loss.backward()
    with torch.no_grad():
        for w in (a, b, c, d):
            w -= 5e-6 * w.grad
            w.grad = None
print(f"y = {a.item():.5f} + {b.item():.5f} * P_3({c.item():.5f} + {d.item():.5f} x)")
torch.autograd.gradcheck(LegendrePolynomial3.apply, (torch.ones(3, dtype=torch.double, requires_grad=True),))

xx = x.unsqueeze(-1).pow(torch.tensor([1, 2, 3]))
model = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0, 1))
model[0].weight.data = torch.tensor([[0.1, -0.2, 0.05]])
model[0].bias.data.zero_()
loss_fn = torch.nn.MSELoss(size_average=False)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-2)
for t in range(60):
    loss = loss_fn(model(xx), y)
    if t % 20 == 19:
        print(t, "%.4f" % loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(model[0].weight, model[0].bias)


class DynamicNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = (torch.nn.Parameter(torch.tensor(v)) for v in (0.3, -0.4))

    def forward(self, x, n):
        y = self.a
        for exp in range(1, n):
            y = y + self.b * x**exp
        return y

    def string(self):
        return f"y = {self.a.item():.4f} + {self.b.item():.4f} x"


net = DynamicNet()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-8, momentum=0.9)
for t in range(6):
    loss = torch.nn.functional.mse_loss(net(x, 4 + t % 2), y, reduce=False).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("%.4f" % loss, net.string(), net)
