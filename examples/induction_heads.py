"""Find the heads that copy: train a small attention model on repeats, look at it, ablate it.

    python examples/induction_heads.py

Sequences of random tokens come twice. Only a model that finds the earlier copy of a token and
repeats what followed can predict the second half. Olsson et al. 2022 (arXiv:2209.11895) found that
two layers of attention learn it: heads that tell each token what came before it, and *induction
heads* that use this to find what came after the token's earlier copy.

The program trains such a model, scores each head by where it looks, ablates heads one by one, and
shows how the loss on repeats rises when they are taken away, one by one and together.

Result: after 300 steps (4 s) the loss on repeats is 0.04, where a guess has 4.16. All four heads of
the second layer look at what followed an earlier copy, with 0.85 to 0.87 of their weight; without
them the loss is 4.6. Without the first layer's heads it is 4.2.
"""

import argparse
import math

import votive
from votive import glass, nn
from votive.nn import functional as F


class Attention(nn.Module):
    """Causal attention whose heads can be told apart at the input of `out`."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.rope = nn.RotaryEmbedding(width // heads)

    def forward(self, x: votive.Tensor) -> votive.Tensor:
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.heads, C // self.heads).unbind(2)
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))  # (B, heads, T, C / heads)
        y = F.scaled_dot_product_attention(self.rope(q), self.rope(k), v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(B, T, C))


class Model(nn.Module):
    """Attention only: no MLP, nothing else that could copy."""

    def __init__(self, vocab: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList(Attention(width, heads) for _ in range(layers))
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)

    def forward(self, ids: votive.Tensor) -> votive.Tensor:
        x = self.embed(ids)  # (B, T, width)
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = x + layer(norm(x))
        return self.head(self.norm(x))  # (B, T, vocab)


def repeats(batch: int, length: int, vocab: int) -> votive.Tensor:
    """Random tokens, twice: (batch, 2 * length)."""
    once = votive.randint(0, vocab, (batch, length))
    return votive.cat([once, once], 1)


def losses(model: Model, ids: votive.Tensor) -> tuple[votive.Tensor, votive.Tensor]:
    """Loss on the first half, which nobody can know, and on the second, which can be copied."""
    logits = model(ids[:, :-1])
    each = F.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none")  # (B, T)
    half = ids.shape[1] // 2
    return each[:, : half - 1].mean(), each[:, half:].mean()


def train(model: Model, steps: int, batch: int, length: int, vocab: int) -> None:
    optimizer = votive.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.98))
    for step in range(1, steps + 1):
        first, second = losses(model, repeats(batch, length, vocab))
        loss = (first + second) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0 or step == 1:
            print(f"step {step:4d}  first half {first.item():.3f}  repeats {second.item():.3f}")


def where_heads_look(model: Model, ids: votive.Tensor) -> dict[tuple[int, int], dict[str, float]]:
    """For each head: mean weight on the previous token, and on what followed the earlier copy."""
    maps = glass.attention_maps(model, ids)  # weights are rebuilt from the fused attention
    kinds = {kind: maps.score(kind) for kind in ("previous", "induction")}  # (layers, heads) each
    return {
        (layer, head): {kind: float(found[layer, head]) for kind, found in kinds.items()}
        for layer in range(len(model.layers))
        for head in range(model.layers[layer].heads)
    }


def ablated(model: Model, ids: votive.Tensor, heads: list[tuple[int, int]]) -> float:
    """Loss on repeats when some heads say nothing."""
    size = model.embed.embedding_dim // model.layers[0].heads
    edits = [glass.Edit(f"layers.{i}.out:in", "zero", features=range(h * size, (h + 1) * size)) for i, h in heads]
    with votive.no_grad(), glass.patch(model, edits):
        return losses(model, ids)[1].item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    votive.manual_seed(args.seed)
    vocab, length = 64, 24
    model = Model(vocab, width=64, heads=4, layers=2)
    train(model, args.steps, 32, length, vocab)
    ids = repeats(64, length, vocab)
    with votive.no_grad():
        whole = losses(model, ids)[1].item()
    print(f"\nloss on repeats {whole:.3f}; a guess would have {math.log(vocab):.3f}\n")
    print("layer head  previous  induction  loss on repeats without it")
    scores = where_heads_look(model, ids)
    for (layer, head), s in scores.items():
        loss = ablated(model, ids, [(layer, head)])
        print(f"{layer:5d} {head:4d}  {s['previous']:8.3f}  {s['induction']:9.3f}  {loss:.3f}")
    found = [at for at, s in scores.items() if s["induction"] > 0.5]
    rest = [at for at in scores if at not in found]
    print(f"\nwithout the {len(found)} induction heads: {ablated(model, ids, found):.3f}")
    print(f"without the other {len(rest)}:            {ablated(model, ids, rest):.3f}")


if __name__ == "__main__":
    main()
