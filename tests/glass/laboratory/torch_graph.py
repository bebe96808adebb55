"""Attribution graphs of a Llama with plain torch and its autograd, to measure votive's against."""

from __future__ import annotations

from typing import Any


class TorchGraph:
    """A Llama whose patterns, norm scales and nets are held fast: gradients by what nets wrote are direct effects."""

    def __init__(self, model: Any, torch: Any) -> None:
        self.torch, self.config = torch, model.config
        self.w = {n: torch.tensor(p.detach().numpy(), dtype=torch.float64) for n, p in model.named_parameters()}
        c = model.config
        self.heads, self.shared, self.width = c.num_attention_heads, c.num_key_value_heads, c.head_dim

    def norm(self, x: Any, name: str) -> Any:
        scale = self.torch.rsqrt(x.square().mean(-1, keepdim=True) + self.config.rms_norm_eps)
        return x * scale.detach() * self.w[name + ".weight"]

    def rotate(self, x: Any) -> Any:  # (T, D)
        torch, half = self.torch, self.width // 2
        powers = self.config.rope_theta ** (torch.arange(half, dtype=torch.float64) / half)
        angle = torch.arange(x.shape[0], dtype=torch.float64)[:, None] / powers
        a, b = x[:, :half], x[:, half:]
        return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)

    def run(self, ids: Any) -> tuple[Any, list[Any], list[Any]]:
        """Logits less their mean, what was written (tokens, then nets), and what nets read, all (positions, …)."""
        torch = self.torch
        x = self.w["model.embed_tokens.weight"][ids].clone().requires_grad_(True)
        written, read = [x], []
        for layer in range(self.config.num_hidden_layers):
            at = f"model.layers.{layer}."
            normed = self.norm(x, at + "input_layernorm")
            q, k, v = (normed @ self.w[f"{at}self_attn.{n}_proj.weight"].T for n in "qkv")
            out = self.w[at + "self_attn.o_proj.weight"].view(-1, self.heads, self.width)
            for h in range(self.heads):
                g = h // (self.heads // self.shared)
                part = slice(h * self.width, (h + 1) * self.width)
                key = slice(g * self.width, (g + 1) * self.width)
                scores = self.rotate(q[:, part]) @ self.rotate(k[:, key]).T / self.width**0.5
                hidden = torch.triu(torch.ones_like(scores), 1).bool()
                pattern = scores.masked_fill(hidden, -torch.inf).softmax(-1).detach()
                x = x + pattern @ v[:, key] @ out[:, h].T
            read.append(self.norm(x, at + "post_attention_layernorm"))
            gate, up = (read[-1] @ self.w[f"{at}mlp.{n}_proj.weight"].T for n in ("gate", "up"))
            made = (torch.nn.functional.silu(gate) * up) @ self.w[at + "mlp.down_proj.weight"].T
            written.append(made.detach().requires_grad_(True))
            x = x + written[-1]
        logits = self.norm(x, "model.norm") @ self.w["lm_head.weight"].T
        return logits - logits.mean(-1, keepdim=True), written, read

    def neurons(self, layer: int, read: Any) -> tuple[Any, Any]:
        """A layer's neurons as functions of what they read, by halves; and their directions in the stream."""
        torch, at = self.torch, f"model.layers.{layer}.mlp."
        gate, up = (read @ self.w[f"{at}{n}_proj.weight"].T for n in ("gate", "up"))
        sigmoid = torch.sigmoid(gate).detach()  # silu is gate * sigmoid, a line through the origin
        halves = 0.5 * gate * sigmoid * up.detach() + 0.5 * (gate * sigmoid).detach() * up
        return halves, self.w[at + "down_proj.weight"].T

    def edges(self, target: Any, written: list[Any], units: list[tuple[int, Any, Any, Any]]) -> list[float]:
        """What each (layer, position, activation, direction) adds directly to a number, then each token."""
        grads = self.torch.autograd.grad(target, written, retain_graph=True, allow_unused=True)
        grads = [self.torch.zeros_like(w) if g is None else g for g, w in zip(grads, written, strict=True)]
        found = [float(a * (grads[layer + 1][t] @ d)) for layer, t, a, d in units]
        return found + (grads[0] * written[0]).detach().sum(-1).tolist()
