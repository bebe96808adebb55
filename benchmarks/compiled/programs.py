"""The programs: plain torch style, written once and run by either framework (`lib` is `torch` or `votive`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def chain(lib: Any) -> Callable[..., Any]:
    """Elementwise functions, a gate and sums of rows."""

    def run(x: Any, y: Any) -> Any:
        z = lib.sin(x) * lib.exp(-y * y) + lib.sqrt(x * x + 1)
        z = z * lib.sigmoid(y) + lib.log1p(x * x)
        return lib.tanh(z).sum(-1)

    return run


def gpt(lib: Any, *, vocabulary: int, width: int, layers: int, heads: int, length: int, plain: bool) -> Any:
    """A decoder with its loss. `plain`: LayerNorm, biases and GELU as in GPT-2; else RMSNorm by hand and SwiGLU."""
    nn, f = lib.nn, lib.nn.functional

    class RMSNorm(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self, size: int) -> None:
            super().__init__()
            self.weight = nn.Parameter(lib.ones(size))

        def forward(self, x: Any) -> Any:
            return x * lib.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight

    norm = nn.LayerNorm if plain else RMSNorm

    class Attention(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(width, 3 * width, bias=plain)
            self.out = nn.Linear(width, width, bias=plain)

        def forward(self, x: Any) -> Any:
            b, t, c = x.shape
            q, k, v = self.qkv(x).split(c, dim=2)
            q, k, v = (a.view(b, t, heads, c // heads).transpose(1, 2) for a in (q, k, v))
            y = f.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).contiguous().view(b, t, c))

    class Gated(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            hidden = int(8 * width / 3)
            self.gate = nn.Linear(width, hidden, bias=False)
            self.up = nn.Linear(width, hidden, bias=False)
            self.down = nn.Linear(hidden, width, bias=False)

        def forward(self, x: Any) -> Any:
            return self.down(f.silu(self.gate(x)) * self.up(x))

    class Plain(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.act = nn.GELU(approximate="tanh")

        def forward(self, x: Any) -> Any:
            return self.down(self.act(self.up(x)))

    class Block(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.attention = norm(width), Attention()
            self.norm2, self.mlp = norm(width), Plain() if plain else Gated()

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    class GPT(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm, self.head = norm(width), nn.Linear(width, vocabulary, bias=False)
            if plain:
                self.head.weight = self.tokens.weight

        def forward(self, ids: Any, targets: Any) -> Any:
            h = self.tokens(ids) + self.places(lib.arange(ids.shape[1], device=ids.device))
            for block in self.blocks:
                h = block(h)
            logits = self.head(self.norm(h))
            return f.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))

    return GPT()


# Width, layers, heads, key heads, width of a head, hidden, vocabulary, places of the cache, norms of heads.
SHAPES = {
    "qwen3-0.6b": (1024, 28, 16, 8, 128, 3072, 151936, 1024, True),
    "llama-8b": (4096, 32, 32, 8, 128, 14336, 128256, 1024, False),
    "tiny": (64, 2, 4, 2, 16, 96, 128, 64, True),
}


def decoder(lib: Any, shape: str) -> Any:
    """One step of a decoder with keys and values kept in place: `model(ids, position, cache)` gives the next ids."""
    nn, f = lib.nn, lib.nn.functional
    width, layers, heads, shared, size, hidden, vocabulary, places, head_norms = SHAPES[shape]

    class RMSNorm(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self, size: int) -> None:
            super().__init__()
            self.weight = nn.Parameter(lib.ones(size))

        def forward(self, x: Any) -> Any:
            h = x.float()
            h = h * lib.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
            return self.weight * h.to(x.dtype)

    def rotate_half(x: Any) -> Any:
        a, b = x.chunk(2, dim=-1)
        return lib.cat((-b, a), dim=-1)

    class Attention(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.q, self.k, self.v = (nn.Linear(width, n * size, bias=False) for n in (heads, shared, shared))
            self.o = nn.Linear(heads * size, width, bias=False)
            self.q_norm, self.k_norm = (RMSNorm(size) if head_norms else nn.Identity() for _ in range(2))

        def forward(self, x: Any, cos: Any, sin: Any, keys: Any, values: Any, position: Any, mask: Any) -> Any:
            b, t, _ = x.shape
            q = self.q_norm(self.q(x).view(b, t, heads, size)).transpose(1, 2)
            k = self.k_norm(self.k(x).view(b, t, shared, size)).transpose(1, 2)
            v = self.v(x).view(b, t, shared, size).transpose(1, 2)
            q = q * cos + rotate_half(q) * sin
            k = k * cos + rotate_half(k) * sin
            keys.index_copy_(2, position, k)
            values.index_copy_(2, position, v)
            y = f.scaled_dot_product_attention(q, keys, values, attn_mask=mask, enable_gqa=True)
            return self.o(y.transpose(1, 2).reshape(b, t, heads * size))

    class MLP(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
            self.down = nn.Linear(hidden, width, bias=False)

        def forward(self, x: Any) -> Any:
            return self.down(f.silu(self.gate(x)) * self.up(x))

    class Block(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.attention, self.norm2, self.mlp = RMSNorm(width), Attention(), RMSNorm(width), MLP()

        def forward(self, x: Any, *rest: Any) -> Any:
            x = x + self.attention(self.norm1(x), *rest)
            return x + self.mlp(self.norm2(x))

    class Model(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm, self.head = RMSNorm(width), nn.Linear(width, vocabulary, bias=False)
            self.register_buffer("turns", 1.0 / (1e6 ** (lib.arange(0, size, 2).float() / size)), persistent=False)

        def forward(self, ids: Any, position: Any, cache: Any) -> Any:
            h = self.tokens(ids)
            angles = position.float()[:, None] * self.turns.float()[None]
            angles = lib.cat((angles, angles), dim=-1)
            cos, sin = angles.cos().to(h.dtype), angles.sin().to(h.dtype)
            mask = (lib.arange(places, device=ids.device)[None] <= position[:, None])[None, None]
            for block, (keys, values) in zip(self.blocks, cache, strict=True):
                h = block(h, cos, sin, keys, values, position, mask)
            return self.head(self.norm(h))[:, -1].argmax(-1, keepdim=True)

    return Model()


def empty_cache(lib: Any, shape: str, rows: int, device: str) -> list[Any]:
    """Keys and values of every layer."""
    _, layers, _, shared, size, _, _, places, _ = SHAPES[shape]
    new = lambda: lib.zeros(rows, shared, places, size, dtype=lib.bfloat16, device=device)
    return [(new(), new()) for _ in range(layers)]
