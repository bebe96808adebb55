"""A Llama written with torch as a graph of writers and readers, to measure votive's circuits against."""

from __future__ import annotations

from typing import Any


class TorchDecoder:
    """Every reader gets the sum of what writers wrote, of which those that are cut count as in another run."""

    def __init__(self, model: Any, torch: Any) -> None:
        self.torch, self.config = torch, model.config
        self.w = {n: torch.tensor(p.detach().numpy(), dtype=torch.float64) for n, p in model.named_parameters()}
        c = model.config
        self.heads, self.shared, self.width = c.num_attention_heads, c.num_key_value_heads, c.head_dim

    def norm(self, x: Any, name: str) -> Any:
        scale = self.torch.rsqrt(x.square().mean(-1, keepdim=True) + self.config.rms_norm_eps)
        return x * scale * self.w[name + ".weight"]

    def rotate(self, x: Any) -> Any:  # (B, T, D)
        torch, half = self.torch, self.width // 2
        powers = self.config.rope_theta ** (torch.arange(half, dtype=torch.float64) / half)
        angle = torch.arange(x.shape[1], dtype=torch.float64)[:, None] / powers
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)

    def run(self, ids: Any, cut: Any = None, other: Any = None, start: Any = None) -> tuple[Any, list[Any], list[Any]]:
        """Logits, what was written and what was read; `cut` is (writers, readers), `other` may be by reader."""
        torch = self.torch
        written = [self.w["model.embed_tokens.weight"][ids] if start is None else start]
        read: list[Any] = []

        def take() -> Any:
            column, parts = len(read), list(written)
            if cut is not None:
                table = other(column) if callable(other) else other
                parts = [table[i] if cut[i, column] else p for i, p in enumerate(parts)]
            x = torch.stack(parts).sum(0)
            if not x.requires_grad:
                x.requires_grad_(True)
            read.append(x)
            return x

        for layer in range(self.config.num_hidden_layers):
            at = f"model.layers.{layer}."
            parts: dict[str, list[Any]] = {"q": [], "k": [], "v": []}
            for kind, count in (("q", self.heads), ("k", self.shared), ("v", self.shared)):
                matrix = self.w[f"{at}self_attn.{kind}_proj.weight"].view(count, self.width, -1)
                for h in range(count):
                    y = self.norm(take(), at + "input_layernorm") @ matrix[h].T
                    parts[kind].append(y if kind == "v" else self.rotate(y))
            out = self.w[at + "self_attn.o_proj.weight"].view(-1, self.heads, self.width)
            results = []
            for h in range(self.heads):
                g = h // (self.heads // self.shared)
                scores = parts["q"][h] @ parts["k"][g].transpose(-2, -1) / self.width**0.5
                hidden = torch.triu(torch.ones_like(scores), 1).bool()
                pattern = scores.masked_fill(hidden, -torch.inf).softmax(-1)
                results.append(pattern @ parts["v"][g] @ out[:, h].T)
            written += results
            y = self.norm(take(), at + "post_attention_layernorm")
            gate, up = (y @ self.w[f"{at}mlp.{n}_proj.weight"].T for n in ("gate", "up"))
            written.append((torch.nn.functional.silu(gate) * up) @ self.w[at + "mlp.down_proj.weight"].T)
        logits = self.norm(take(), "model.norm") @ self.w["lm_head.weight"].T
        return logits, written, read
