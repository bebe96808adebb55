"""Train a character-level GPT on a text file, then let it write.

    python examples/char_gpt.py                      # on examples/data/tiny.txt
    python examples/char_gpt.py --text my.txt --steps 2000

Result: 1.98 nats per character on the training text, 2.04 held out, after 600 steps of 16 windows
of 64 characters (347,712 parameters); 236 s on a busy machine.
"""

import argparse
import math
import time
from pathlib import Path

import numpy as np
from progress import Line

import votive
from votive import nn
from votive.nn import functional as F

TEXT = Path(__file__).parent / "data" / "tiny.txt"  # the opening of Shakespeare's Coriolanus


class Attention(nn.Module):
    """Causal self-attention of `heads` heads."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: votive.Tensor) -> votive.Tensor:
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.heads, C // self.heads).unbind(2)
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))  # each (B, heads, T, C / heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    """Pre-norm transformer block: attention, then a four times wider MLP."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: votive.Tensor) -> votive.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Decoder-only transformer over `vocab` characters and at most `context` positions."""

    def __init__(self, vocab: int, context: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.context = context
        self.token = nn.Embedding(vocab, width)
        self.position = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)
        self.head.weight = self.token.weight  # input and output share one table
        for name, p in self.named_parameters():
            if p.dim() == 2:
                # GPT-2's rule: what writes into the residual stream shrinks with its depth.
                shrink = math.sqrt(2 * layers) if name.endswith(("out.weight", "2.weight")) else 1
                nn.init.normal_(p, std=0.02 / shrink)

    def forward(self, idx: votive.Tensor) -> votive.Tensor:
        x = self.token(idx) + self.position(votive.arange(idx.shape[1]))  # (B, T, width)
        return self.head(self.norm(self.blocks(x)))  # (B, T, vocab)

    @votive.no_grad()
    def write(self, idx: votive.Tensor, length: int) -> votive.Tensor:
        """Append `length` sampled characters to `idx`, of shape (1, T)."""
        for _ in range(length):
            logits = self(idx[:, -self.context :])[:, -1]
            idx = votive.cat([idx, votive.multinomial(logits.softmax(-1), 1)], dim=1)
        return idx


def batches(data: np.ndarray, context: int, batch: int, seed: int):
    """Yield random windows of the text and the same windows one character on, for ever."""
    rng = np.random.default_rng(seed)
    while True:
        start = rng.integers(len(data) - context, size=batch)
        window = data[start[:, None] + np.arange(context + 1)]  # (batch, context + 1)
        yield votive.from_numpy(window[:, :-1].copy()), votive.from_numpy(window[:, 1:].copy())


def loss_of(model: nn.Module, x: votive.Tensor, y: votive.Tensor) -> votive.Tensor:
    """Mean cross entropy, in nats per character."""
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def optimizer_of(model: nn.Module, lr: float) -> votive.optim.Optimizer:
    """AdamW that decays matrices only: norms and biases have nothing to gain from it."""
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    return votive.optim.AdamW(groups, lr=lr, betas=(0.9, 0.99))


def train_step(model: nn.Module, optimizer, x: votive.Tensor, y: votive.Tensor) -> float:
    """One update on one batch; returns the loss before it."""
    loss = loss_of(model, x, y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a character-level GPT.")
    parser.add_argument("--text", type=Path, default=TEXT)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--write", type=int, default=300, help="characters to write at the end")
    args = parser.parse_args()

    votive.manual_seed(args.seed)
    text = args.text.read_text()
    letters = sorted(set(text))
    data = np.array([letters.index(c) for c in text])
    train, held = np.split(data, [int(0.9 * len(data))])
    model = GPT(len(letters), args.context, args.width, args.heads, args.layers)
    optimizer = optimizer_of(model, args.lr)
    schedule = votive.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps, args.lr / 10)

    began = time.perf_counter()
    line = Line(args.steps)
    source = batches(train, args.context, args.batch, args.seed)
    for _ in line:
        loss = train_step(model, optimizer, *next(source))
        schedule.step()
        line.show(loss=loss)
    seconds = time.perf_counter() - began

    with votive.no_grad():
        source = batches(held, args.context, 64, seed=1)
        held_loss = np.mean([loss_of(model, *next(source)).item() for _ in range(4)])
    start = votive.tensor([[letters.index("\n")]])
    print("".join(letters[i] for i in model.write(start, args.write)[0].tolist()))
    print(f"train loss {loss:.3f}  held-out loss {held_loss:.3f}  seconds {seconds:.1f}")


if __name__ == "__main__":
    main()
