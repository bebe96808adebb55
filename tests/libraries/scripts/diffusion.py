"""A small denoising model with a time embedding, group norm, skip connections, EMA and ancestral sampling."""
# ruff: noqa

import math
from copy import deepcopy

import numpy as np
import torch
import torch.nn.functional as F
from torch import einsum, nn

rng = np.random.default_rng(18)
noise = lambda shape: torch.from_numpy(rng.standard_normal(tuple(shape)).astype(np.float32))
default = lambda val, d: d if val is None else val


class SinusoidalPosEmb(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        half = self.dim // 2
        emb = torch.exp(torch.arange(half, device=x.device) * -(math.log(10000) / (half - 1)))
        emb = x[:, None] * emb[None, :]
        return torch.cat((emb.sin(), emb.cos()), dim=-1)


class Block(nn.Module):
    def __init__(self, cin, cout, time_dim):
        super().__init__()
        self.mlp = nn.Sequential(nn.SiLU(), nn.Linear(time_dim, cout * 2))
        self.proj = nn.Conv2d(cin, cout, 3, padding=1)
        self.norm = nn.GroupNorm(2, cout)
        self.res_conv = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x, t):
        scale, shift = self.mlp(t)[..., None, None].chunk(2, dim=1)
        h = self.norm(self.proj(x)) * (scale + 1) + shift
        return F.silu(h) + self.res_conv(x)


class LinearAttention(nn.Module):
    def __init__(self, dim, heads=2, dim_head=4):
        super().__init__()
        self.scale, self.heads = dim_head**-0.5, heads
        self.to_qkv = nn.Conv2d(dim, dim_head * heads * 3, 1, bias=False)
        self.to_out = nn.Conv2d(dim_head * heads, dim, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = (t.reshape(b, self.heads, -1, h * w) for t in self.to_qkv(x).chunk(3, dim=1))
        q, k = q.softmax(dim=-2) * self.scale, k.softmax(dim=-1)
        context = einsum("b h d n, b h e n -> b h d e", k, v)
        out = einsum("b h d e, b h d n -> b h e n", context, q)
        return self.to_out(out.reshape(b, -1, h, w)) + x


class Unet(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.time_mlp = nn.Sequential(
            SinusoidalPosEmb(dim), nn.Linear(dim, dim * 2), nn.GELU(), nn.Linear(dim * 2, dim)
        )
        self.init_conv = nn.Conv2d(1, dim, 7, padding=3)
        self.down = Block(dim, dim * 2, dim)
        self.pool = nn.Conv2d(dim * 2, dim * 2, 4, 2, 1)
        self.attn = LinearAttention(dim * 2)
        self.up = nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(dim * 2, dim, 3, padding=1))
        self.final = Block(dim * 3, dim, dim)
        self.out = nn.Conv2d(dim, 1, 1)

    def forward(self, x, time):
        t = self.time_mlp(time)
        x = self.init_conv(x)
        h = self.down(x, t)
        x = self.up(self.attn(self.pool(h)))
        return self.out(self.final(torch.cat((x, h), dim=1), t))


T = 10
betas = torch.linspace(1e-4, 0.2, T, dtype=torch.float64)
alphas_cumprod = torch.cumprod(1.0 - betas, dim=0)
prev = F.pad(alphas_cumprod[:-1], (1, 0), value=1.0)
variance = betas * (1.0 - prev) / (1.0 - alphas_cumprod)


def extract(a, t, x_shape):
    return a.gather(-1, t).reshape(t.shape[0], *((1,) * (len(x_shape) - 1))).float()


model = Unet()
for p in model.parameters():
    p.data.copy_(noise(p.shape) * 0.15)
ema = deepcopy(model)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.99))
for step in range(4):
    x0, t = noise((4, 1, 8, 8)).clamp(-1, 1), torch.from_numpy(rng.integers(0, T, 4))
    e = noise(x0.shape)
    x = extract(alphas_cumprod.sqrt(), t, x0.shape) * x0 + extract((1 - alphas_cumprod).sqrt(), t, x0.shape) * e
    loss = F.l1_loss(model(x, t), e) + F.mse_loss(model(x, t), e)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for old, new in zip(ema.parameters(), model.parameters()):
        old.data = old.data * 0.9 + (1 - 0.9) * new.data
    print(step, "%.5f" % loss.item())


@torch.inference_mode()
def sample():
    img = noise((2, 1, 8, 8))
    for i in reversed(range(T)):
        t = torch.full((2,), i, dtype=torch.long)
        pred = ema(img, t)
        a, b = extract(alphas_cumprod, t, img.shape), extract(betas, t, img.shape)
        img = (img - b / (1 - a).sqrt() * pred) / (1 - b).sqrt()
        if i > 0:
            img = img + extract(variance, t, img.shape).sqrt() * noise(img.shape)
    return img


out = sample()
print("%.4f %.4f" % (out.mean(), out.std()), out.requires_grad)
