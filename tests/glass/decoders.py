"""Decoders that the tests of lenses look through: each family, and one made by hand."""

from __future__ import annotations

import math
from typing import Any

import votive
from votive import nn
from votive.models import auto, auto_table

from .test_models import made

# Those that run through named places: decoders made for encoders norm after they add, and have names of their own.
EVERY = [
    f
    for f in sorted(auto_table.FAMILIES)
    if "causal" in auto._family(f)[1] and getattr(auto._family(f)[1]["causal"][0], "runs_through_points", False)
]
# Those that differ in what lenses and circuits look at, whose parts have the names of a Llama or a GPT-2.
CAUSAL = ["gemma", "gemma2", "gemma3_text", "gpt2", "llama", "mistral", "mixtral", "phi3", "qwen2", "qwen3"]
CAUSAL += ["qwen3_moe"]


class Attention(nn.Module):
    """Attention written out by hand."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        seen = votive.ones(T, T, dtype=votive.bool).tril()
        weights = votive.softmax(scores.masked_fill(~seen, -math.inf), -1)
        return self.out((weights @ v).transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    """A block whose MLP is not a module of its own."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
        self.look = Attention(width, heads)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Any) -> Any:
        x = x + self.look(self.one(x))
        return x + self.down(votive.relu(self.up(self.two(x))))


class Mine(nn.Module):
    """A decoder in a Sequential, that scores with its embedding and gives a bare tensor."""

    def __init__(self, width: int = 15, heads: int = 3, layers: int = 2, tokens: int = 61) -> None:
        super().__init__()
        self.tokens = nn.Embedding(tokens, width)
        self.places = nn.Embedding(32, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.end = nn.LayerNorm(width)

    def forward(self, ids: Any) -> Any:
        x = self.tokens(ids) + self.places(votive.arange(ids.shape[1]))
        return self.end(self.blocks(x)) @ self.tokens.weight.t()


def decoder(name: str) -> tuple[Any, Any]:
    """A small decoder with weights that are all random, and ids of shape (2, 5)."""
    if name == "mine":
        votive.manual_seed(0)
        model: Any = Mine().eval()
    else:
        model = made(name)[0]
    g = votive.Generator().manual_seed(1)
    with votive.no_grad():
        for p in model.parameters():
            # Norms of one and biases of zero would hide what is left out.
            p.add_(0.1 * votive.randn(p.shape, generator=g))
    return model, votive.tensor([[5, 6, 7, 8, 9], [9, 8, 5, 9, 8]])


ALL = [*CAUSAL, "mine"]
