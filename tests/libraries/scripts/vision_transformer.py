"""Patches, a class token, stochastic depth off, mixup by hand, warm-up by LambdaLR chained with cosine, tensors on disk."""
# ruff: noqa

import io

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

rng = np.random.default_rng(19)


class PatchEmbed(nn.Module):
    def __init__(self, size=12, patch=4, chans=3, dim=16):
        super().__init__()
        self.num_patches = (size // patch) ** 2
        self.proj = nn.Conv2d(chans, dim, kernel_size=patch, stride=patch)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class Attention(nn.Module):
    def __init__(self, dim, heads=4):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.qkv, self.proj = nn.Linear(dim, dim * 3), nn.Linear(dim, dim)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        attn = ((q * self.scale) @ k.transpose(-2, -1)).softmax(dim=-1)
        return self.proj((attn @ v).transpose(1, 2).reshape(B, N, C))


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim, eps=1e-6), nn.LayerNorm(dim, eps=1e-6)
        self.attn = Attention(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, dim * 2), nn.GELU(approximate="tanh"), nn.Linear(dim * 2, dim))
        self.gamma = nn.Parameter(1e-1 * torch.ones(dim))

    def forward(self, x):
        x = x + self.gamma * self.attn(self.norm1(x))
        return x + self.gamma * self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, classes=5, dim=16, depth=2):
        super().__init__()
        self.patch_embed = PatchEmbed(dim=dim)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, self.patch_embed.num_patches + 1, dim))
        self.blocks = nn.Sequential(*[Block(dim) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, classes)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)

    def forward(self, x):
        x = self.patch_embed(x)
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])


model = ViT()
with torch.no_grad():
    for p in model.parameters():
        p.mul_(0).add_(torch.from_numpy(rng.standard_normal(tuple(p.shape)).astype("f4")), alpha=0.2)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.05)
warm = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=2)
cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, cosine], milestones=[2])
for step in range(5):
    x = torch.from_numpy(rng.standard_normal((4, 3, 12, 12)).astype("f4"))
    y = F.one_hot(torch.from_numpy(rng.integers(0, 5, 4)), 5).float()
    lam = 0.7
    x, y = lam * x + (1 - lam) * x.flip(0), lam * y + (1 - lam) * y.flip(0)
    loss = torch.sum(-y * F.log_softmax(model(x), dim=-1), dim=-1).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    scheduler.step()
    print("%d %.5f %.6f" % (step, loss.item(), scheduler.get_last_lr()[0]))
buffer = io.BytesIO()
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, buffer)
buffer.seek(0)
checkpoint = torch.load(buffer, map_location="cpu")
print(checkpoint["epoch"], len(checkpoint["model"]), checkpoint["optimizer"]["param_groups"][0]["betas"])
again = ViT()
again.load_state_dict(checkpoint["model"])
print(torch.allclose(again(x), model(x)), again.pos_embed.shape, again.cls_token.dtype)
pos = model.pos_embed[:, 1:].reshape(1, 3, 3, 16).permute(0, 3, 1, 2)
print("%.5f" % F.interpolate(pos, size=(5, 5), mode="bicubic", align_corners=False).sum().item())
