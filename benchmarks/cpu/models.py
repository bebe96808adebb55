"""Models written once for both frameworks: `m` is votive or torch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .case import randn, tensor


def fill(m: Any, model: Any) -> Any:
    """Give every parameter the same numbers in both frameworks."""
    with m.no_grad():
        for i, p in enumerate(model.parameters()):
            scale = 1 / math.sqrt(p.shape[-1]) if p.ndim > 1 else 0.1
            p.copy_(tensor(m, randn(*p.shape, seed=i) * np.float32(scale)))
    return model


def mlp(m: Any, width: int = 512) -> Any:
    """784-512-512-10."""
    nn = m.nn
    return nn.Sequential(nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))


def cnn(m: Any, width: int = 16) -> Any:
    """Two convolutions and two linear layers on 28×28 images."""
    nn = m.nn
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(2 * width * 49, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def gpt(m: Any, vocabulary: int, context: int, width: int, heads: int, layers: int) -> Any:
    """A GPT as nanoGPT has it: pre-norm blocks, learned positions."""
    nn, functional = m.nn, m.nn.functional

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv = nn.Linear(width, 3 * width, bias=False)
            self.out = nn.Linear(width, width, bias=False)
            self.up = nn.Linear(width, 4 * width, bias=False)
            self.down = nn.Linear(4 * width, width, bias=False)

        def forward(self, x: Any) -> Any:
            b, t, c = x.shape
            q, k, v = self.qkv(self.norm1(x)).split(c, 2)
            q, k, v = (h.view(b, t, heads, c // heads).transpose(1, 2) for h in (q, k, v))
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).contiguous().view(b, t, c))
            return x + self.down(functional.gelu(self.up(self.norm2(x))))

    class GPT(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, width)
            self.positions = nn.Embedding(context, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, vocabulary, bias=False)

        def forward(self, x: Any) -> Any:
            places = m.arange(x.shape[1])
            return self.head(self.norm(self.blocks(self.tokens(x) + self.positions(places))))

    return GPT()


class Decoder:
    """A transformer with RMS norms, rotary positions, grouped heads and SwiGLU; plain functions.

    28 layers of hidden size 1024, 16 heads of 128 with 8 for keys and values, inner size 3072 and
    151,936 tokens are 0.6 billion weights.
    """

    def __init__(
        self,
        m: Any,
        dtype: str,
        layers: int = 28,
        hidden: int = 1024,
        heads: int = 16,
        kv_heads: int = 8,
        head: int = 128,
        inner: int = 3072,
        vocabulary: int = 151_936,
        room: int = 640,
    ) -> None:
        self.m, self.head, self.heads, self.kv_heads = m, head, heads, kv_heads
        self.hidden = hidden

        def weight(*shape: int, seed: int) -> Any:
            scaled = randn(*shape, seed=seed) * np.float32(1 / math.sqrt(shape[-1]))
            return tensor(m, scaled.astype(randn(1, dtype=dtype).dtype))

        def ones(n: int) -> Any:
            return tensor(m, np.ones(n, randn(1, dtype=dtype).dtype))

        self.embedding = weight(vocabulary, hidden, seed=1)  # also the output projection
        self.norm = ones(hidden)
        self.layers = [
            {
                "norm1": ones(hidden),
                "norm2": ones(hidden),
                "norm_q": ones(head),
                "norm_k": ones(head),
                "q": weight(heads * head, hidden, seed=2),
                "k": weight(kv_heads * head, hidden, seed=3),
                "v": weight(kv_heads * head, hidden, seed=4),
                "o": weight(hidden, heads * head, seed=5),
                "gate": weight(inner, hidden, seed=6),
                "up": weight(inner, hidden, seed=7),
                "down": weight(hidden, inner, seed=8),
            }
            for _ in range(layers)
        ]
        keys = randn(1, kv_heads, room, head, dtype=dtype)
        self.cache = [(tensor(m, keys.copy()), tensor(m, keys.copy())) for _ in range(layers)]
        angles = np.outer(np.arange(room), 1e6 ** (-np.arange(0, head, 2) / head))
        angles = np.concatenate([angles, angles], 1)
        kind = randn(1, dtype=dtype).dtype
        self.cos = tensor(m, np.cos(angles).astype(kind))  # (room, head)
        self.sin = tensor(m, np.sin(angles).astype(kind))

    def rotate(self, x: Any, cos: Any, sin: Any) -> Any:
        """Rotary positions, halves as pairs."""
        half = self.head // 2
        rotated = self.m.cat((-x[..., half:], x[..., :half]), -1)
        return x * cos + rotated * sin

    def __call__(self, tokens: Any, start: int) -> Any:
        """Logits of the last of `tokens`, which stand at `start` and after."""
        f, t, end = self.m.nn.functional, tokens.shape[1], start + tokens.shape[1]
        x = f.embedding(tokens, self.embedding)  # (1, t, hidden)
        cos, sin = self.cos[start:end], self.sin[start:end]
        for w, (keys, values) in zip(self.layers, self.cache, strict=True):
            h = f.rms_norm(x, (self.hidden,), w["norm1"], 1e-6)
            q = f.linear(h, w["q"]).view(1, t, self.heads, self.head)
            k = f.linear(h, w["k"]).view(1, t, self.kv_heads, self.head)
            v = f.linear(h, w["v"]).view(1, t, self.kv_heads, self.head).transpose(1, 2)
            q = f.rms_norm(q, (self.head,), w["norm_q"], 1e-6).transpose(1, 2)
            k = f.rms_norm(k, (self.head,), w["norm_k"], 1e-6).transpose(1, 2)
            keys[:, :, start:end] = self.rotate(k, cos, sin)
            values[:, :, start:end] = v
            y = f.scaled_dot_product_attention(
                self.rotate(q, cos, sin), keys[:, :, :end], values[:, :, :end], is_causal=start == 0, enable_gqa=True
            )
            x = x + f.linear(y.transpose(1, 2).reshape(1, t, -1), w["o"])
            h = f.rms_norm(x, (self.hidden,), w["norm2"], 1e-6)
            x = x + f.linear(f.silu(f.linear(h, w["gate"])) * f.linear(h, w["up"]), w["down"])
        return f.linear(f.rms_norm(x[:, -1], (self.hidden,), self.norm, 1e-6), self.embedding)
