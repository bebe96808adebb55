"""The norms of decoders by the names that a design has for them. Knows sizes only."""

from __future__ import annotations

import votive
from votive import nn
from votive.nn import functional as F

from ...tensor import Tensor
from .design import Design


class GemmaRMSNorm(nn.RMSNorm):
    """`x / sqrt(mean(x^2) + eps) * (1 + weight)`, in float32."""

    weight_offset = 1.0

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        scale = 1.0 + self.weight.float()
        return F.rms_norm(x.float(), self.normalized_shape, scale, self.eps).to(x.dtype)


class OffsetLayerNorm(nn.LayerNorm):
    """A layer norm that scales by `1 + weight`."""

    weight_offset = 1.0

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.normalized_shape, 1.0 + self.weight, self.bias, self.eps)


class HeadsNorm(nn.Module):
    """A layer norm of each head (..., heads, features), by weights of its own."""

    def __init__(self, heads: int, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(votive.ones(heads, width))

    def forward(self, x: Tensor) -> Tensor:
        h = F.layer_norm(x.float() if x.dtype.itemsize < 4 else x, (x.shape[-1],), None, None, self.eps)
        return (h * self.weight.to(h.dtype)).to(x.dtype)


class NormList(nn.Module):
    """A norm of each head (..., heads, features), by a module of its own."""

    def __init__(self, heads: int, width: int, eps: float) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width, eps=eps, bias=False) for _ in range(heads))

    def forward(self, x: Tensor) -> Tensor:
        return votive.stack([norm(part) for norm, part in zip(self.norms, x.unbind(-2), strict=True)], -2)


def made_norm(kind: str, width: int, eps: float | None) -> nn.Module:
    """A norm of vectors of `width` features.

    >>> votive.models.decoder.norms.made_norm("layer unbiased", 4, 1e-5)
    LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=False)
    """
    if kind in ("rms", "rms plain"):
        return nn.RMSNorm(width, eps=eps, elementwise_affine=kind == "rms")
    if kind == "rms 1+":
        return GemmaRMSNorm(width, eps=eps)
    assert eps is not None, "only RMS norms have one of their own"
    if kind == "layer 1+":
        return OffsetLayerNorm(width, eps=eps)
    return nn.LayerNorm(width, eps=eps, elementwise_affine=kind != "layer plain", bias=kind == "layer")


def query_norm(d: Design, heads: int) -> nn.Module:
    """The norm of queries or keys of so many heads.

    >>> design = votive.models.OlmoConfig(hidden_size=64, num_attention_heads=4).design
    >>> from dataclasses import replace
    >>> votive.models.decoder.norms.query_norm(replace(design, qk_norm="whole", qk_norm_kind="rms"), 4)
    RMSNorm((64,), eps=1e-05, elementwise_affine=True)
    """
    eps = d.eps if d.qk_norm_eps is None else d.qk_norm_eps
    if d.qk_norm == "heads":
        return HeadsNorm(heads, d.head_dim, eps or 0.0)
    if d.qk_norm == "list":
        return NormList(heads, d.head_dim, eps or 0.0)
    width = heads * d.head_dim if d.qk_norm == "whole" else d.head_dim
    return made_norm(d.qk_norm_kind or d.norm, width, eps)
