"""Sparse autoencoders, transcoders and crosscoders as one module. Knows tensors, no model."""

from __future__ import annotations

import math
from typing import Any

import votive

from ... import nn
from ...tensor import Tensor
from .activations import JumpReLU, batch_top_k, top_k
from .config import SAEConfig


class SAE(nn.Module):
    """Features of values: `f = act((x - b_dec) W_enc + b_enc)` and back, `f W_dec + b_dec`.

    A configuration, or its fields, say which kind; see `SAEConfig`. `encode` is what is used to look: of "batchtopk" a
    threshold that training has measured, so that a value's features do not depend on others beside it. Weights bear
    SAELens' names. What is read is multiplied by `scale_in`, what is given divided by `scale_out`, which training
    measures and `fold` puts into the weights.

    >>> sae = votive.glass.features.SAE(8, 32, "topk", k=4)
    >>> features = sae.encode(votive.randn(2, 5, 8))
    >>> features.shape, int((features != 0).sum(-1).max()) <= 4, sae(votive.randn(3, 8)).shape
    (votive.Size([2, 5, 32]), True, votive.Size([3, 8]))
    """

    def __init__(self, config: SAEConfig | int, /, *args: Any, **options: Any) -> None:
        super().__init__()
        if isinstance(config, SAEConfig):
            if args or options:
                raise TypeError("SAE: give a configuration or its fields, not both; config.replace() changes one.")
        else:
            config = SAEConfig(config, *args, **options)
        self.config = c = config
        # Unit rows at random; the encoder begins as their transpose, which spares many dead features.
        rows = votive.randn(c.d_sae, c.gives)
        rows = rows / rows.norm(dim=-1, keepdim=True)
        self.W_dec = nn.Parameter(rows)
        start = rows.t() if c.d_out is None else votive.randn(c.reads, c.d_sae) / math.sqrt(c.reads)
        self.W_enc = nn.Parameter(start.contiguous().clone())
        self.b_dec = nn.Parameter(votive.zeros(c.gives))
        if c.kind == "gated":
            self.b_gate = nn.Parameter(votive.zeros(c.d_sae))
            self.b_mag = nn.Parameter(votive.zeros(c.d_sae))
            self.r_mag = nn.Parameter(votive.zeros(c.d_sae))
        else:
            self.b_enc = nn.Parameter(votive.zeros(c.d_sae))
        if c.kind == "jumprelu":
            # Its logarithm is learned, so that it stays above 0.
            self.log_threshold = nn.Parameter(votive.full((c.d_sae,), math.log(c.threshold)))
        if c.kind == "batchtopk":
            self.register_buffer("threshold", votive.zeros(()))
        if c.skip:
            self.W_skip = nn.Parameter(votive.zeros(c.gives, c.reads))
        self.register_buffer("scale_in", votive.ones(()))
        self.register_buffer("scale_out", votive.ones(()))

    # --- what goes in ----------------------------------------------------------------------------

    def rows(self, x: Tensor) -> Tensor:
        """What is read, (..., numbers): of a crosscoder all layers side by side; scaled, in the type of the weights."""
        c = self.config
        wanted = (c.layers, c.d_in) if c.layers > 1 else (c.d_in,)
        if tuple(x.shape[-len(wanted) :]) != wanted:
            raise ValueError(f"SAE: it reads (..., {', '.join(map(str, wanted))}), got {tuple(x.shape)}.")
        x = x.flatten(-2) if c.layers > 1 else x
        return x.to(self.W_enc.dtype) * self.scale_in

    def targets(self, y: Tensor) -> Tensor:
        """What is to be given, in the same form."""
        y = y.flatten(-2) if self.config.layers > 1 else y
        return y.to(self.W_enc.dtype) * self.scale_out

    def pre(self, rows: Tensor) -> Tensor:
        """What decides which features fire, from `rows`."""
        if self.config.center:
            rows = rows - self.b_dec
        return rows @ self.W_enc + (self.b_gate if self.config.kind == "gated" else self.b_enc)

    def fire(self, pre: Tensor, *, training: bool = False) -> Tensor:
        """Features from `pre`; in training "batchtopk" looks at the batch, and thresholds have gradients."""
        c = self.config
        if c.kind == "relu":
            return pre.relu()
        if c.kind == "topk":
            return top_k(pre, c.k or 1)
        if c.kind == "batchtopk":
            return batch_top_k(pre, c.k or 1) if training else pre.relu() * (pre > self.threshold)
        if c.kind == "jumprelu":
            threshold = self.log_threshold.exp()
            return JumpReLU.apply(pre, threshold, c.bandwidth) if training else pre.relu() * (pre > threshold)
        # The magnitudes share the encoder with the gate, but for a scale: `exp(r) (x W) + b`.
        return (pre > 0) * ((pre - self.b_gate) * self.r_mag.exp() + self.b_mag).relu()

    # --- what users call -------------------------------------------------------------------------

    def encode(self, x: Tensor) -> Tensor:
        """The features of values: (..., d_in) to (..., d_sae)."""
        return self.fire(self.pre(self.rows(x)))

    def decode(self, features: Tensor, x: Tensor | None = None) -> Tensor:
        """Values from features; a coder with a way around it also needs what it read."""
        c = self.config
        given = features.to(self.W_dec.dtype) @ self.W_dec + self.b_dec
        if c.skip:
            if x is None:
                raise ValueError("SAE.decode: a coder with skip=True needs what it read: decode(features, x).")
            given = given + self.rows(x) @ self.W_skip.t()
        given = given / self.scale_out
        return given.unflatten(-1, (c.layers, c.d_in)) if c.layers > 1 else given

    def forward(self, x: Tensor) -> Tensor:
        """What the features of `x` say of it, or of what a transcoder stands for."""
        return self.decode(self.encode(x), x)

    def directions(self) -> Tensor:
        """What each feature writes, a row each; of a crosscoder (features, layers, numbers)."""
        c = self.config
        rows = self.W_dec.detach() / self.scale_out
        return rows.unflatten(-1, (c.layers, c.d_in)) if c.layers > 1 else rows

    def fold(self) -> SAE:
        """Put the scales into the weights; what it computes stays the same."""
        self.check_scales()
        with votive.no_grad():
            self.W_enc.mul_(self.scale_in)
            if self.config.skip:
                self.W_skip.mul_(self.scale_in / self.scale_out)
            self.W_dec.div_(self.scale_out)
            self.b_dec.div_(self.scale_out)
            self.scale_in.fill_(1.0)
            self.scale_out.fill_(1.0)
        return self

    def check_scales(self) -> None:
        """Raise where scales cannot be in the weights: a bias that is taken away and added must have one scale."""
        if self.config.center and float(self.scale_in) != float(self.scale_out):
            raise ValueError(
                f"SAE: it has center=True, but scales of {float(self.scale_in):.4g} for what it reads and "
                f"{float(self.scale_out):.4g} for what it gives; they must be the same."
            )

    def extra_repr(self) -> str:
        c = self.config
        to = f" -> {c.gives}" if c.role == "transcoder" else ""
        return f"{c.role}, {c.kind}, {c.reads} -> {c.d_sae}{to}" + (f", at {c.site!r}" if c.site else "")
