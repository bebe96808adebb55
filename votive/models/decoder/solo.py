"""A layer of one part, normed and added: a mixer of positions, or a net. Knows no family."""

from __future__ import annotations

from typing import Any, ClassVar

from votive import nn
from votive.nn.points import inside, opens, point

from ...tensor import Tensor
from ..attention import AttentionMask, Weights
from ..opened import Norms, open_norm
from .attention import Rotate
from .design import Design
from .layer import MIXERS, DecoderLayer
from .mixture import Mixture
from .nets import NETS
from .norms import made_norm


class SoloLayer(DecoderLayer):
    """`x + mixer(norm(x))`. A design's mixers may be "mlp" and "moe", too, which mix no positions.

    With `extra["wide_stream"]` the stream is of 32 bits or more, whatever the weights are.
    """

    mixture_class: ClassVar[type[Mixture]] = Mixture

    def __init__(self, d: Design, layer_idx: int) -> None:
        nn.Module.__init__(self)
        kind = d.mixer(layer_idx)
        self.layer_idx, self.is_net = layer_idx, kind in ("mlp", "moe")
        self.norm_name, self.mixer_path, self.wide_stream = d.norms[0], d.attention, bool(d.extra.get("wide_stream"))
        self.residual_scale, self.dropout, self.mixer_dropout, self.parallel = 1.0, 0.0, 0.0, False
        if self.is_net:
            part: nn.Module = self.mixture_class(d) if kind == "moe" else NETS[d.net_kind](d)
        else:
            part = MIXERS[kind][0](d, layer_idx)
        setattr(self, self.norm_name, made_norm(d.norm, d.width, d.eps))
        setattr(self, self.mixer_path, part)

    @property
    def mixer(self) -> nn.Module:
        """The one part."""
        found = self._modules[self.mixer_path]
        assert found is not None, "made so"
        return found

    @property
    def net(self) -> nn.Module:
        """The one part, where it is a net."""
        if not self.is_net:
            raise LookupError(f"layer {self.layer_idx} is a {type(self.mixer).__name__} and has no net behind it.")
        return self.mixer

    def norms(self) -> Norms:
        """The norm before it; there is none behind."""
        own = getattr(self, self.norm_name)
        return (None, None, own, None) if self.is_net else (own, None, None, None)

    def forward(
        self, x: Tensor, rope: Rotate, mask: AttentionMask, cache: nn.KVCache | None = None, weights: Weights = None
    ) -> Tensor:
        norm = getattr(self, self.norm_name)
        if self.wide_stream and x.dtype.itemsize < 4:
            x = x.float()
        kind = norm.weight.dtype
        if not opens(self.layer_idx):
            return x + self._call(norm(x.to(kind)), (rope, mask, cache, weights))
        at, names = (
            f"layers.{self.layer_idx}",
            ("mlp_in", "ln2", "mlp_out") if self.is_net else ("attn_in", "ln1", "attn_out"),
        )
        x = point(f"{at}.resid_pre", x)
        read = open_norm(norm, point(f"{at}.{names[0]}", x).to(kind), f"{at}.{names[1]}")
        with inside(at):
            y = self._call(read, (rope, mask, cache, weights))
        return point(f"{at}.resid_post", x + point(f"{at}.{names[2]}", y))

    def _call(self, x: Tensor, rest: tuple[Any, ...]) -> Tensor:
        if not self.is_net:
            return self.mixer(x, *rest)
        cache = rest[2]
        if cache is not None:
            cache.keep(self.layer_idx, (), x.shape[1])  # so that every layer knows how long the text is
        return self.mixer(x)
