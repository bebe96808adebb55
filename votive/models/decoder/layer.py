"""A decoder's layer: a mixer of positions and a net, each normed and added as the design says. Knows no family."""

from __future__ import annotations

from collections.abc import Callable

import votive
from votive import nn
from votive.nn import functional as F
from votive.nn.points import opens
from votive.nn.residual import add_norm

from ...tensor import Tensor
from ..attention import AttentionMask, Weights
from ..opened import Norms, open_layer
from .attention import DecoderAttention, Rotate
from .design import Design
from .latent_attention import LatentAttention
from .mixture import Mixture
from .nets import NETS
from .norms import made_norm
from .products import Around, place

Mixer = Callable[[Design, int], nn.Module]
# Kinds of mixers: how one is made for a layer, and the attribute that holds it ("": as the design calls attention).
# A mixer is called as attention is: (x, rope, mask, cache, weights).
MIXERS: dict[str, tuple[Mixer, str]] = {"attention": (DecoderAttention, ""), "latent": (LatentAttention, "")}


class DecoderLayer(nn.Module):
    """Attention (or another mixer), then the net; or both side by side."""

    def __init__(self, d: Design, layer_idx: int) -> None:
        super().__init__()
        made, own = MIXERS[d.mixer(layer_idx)]
        self.layer_idx, self.mixer_path = layer_idx, own or d.attention
        place(self, self.mixer_path, made(d, layer_idx))
        sparse = d.has_experts(layer_idx)
        self.net_path = d.experts_net or d.net if sparse else d.net
        net = Mixture(d) if sparse else NETS[d.net_kind](d)
        if d.experts is not None and isinstance(net, Mixture) and d.experts.shared and d.experts.shared_beside:
            setattr(self, d.experts.shared_path, net.common)
        if self.net_path:
            place(self, self.net_path, net)
        else:
            # Its products are the layer's own children: the net itself is only what calls them.
            for name, child in net.named_children():
                setattr(self, name, child)
            self.__dict__["_net"] = net
        self.norm_names = d.norms
        for name in d.norms:
            if name and name not in self._modules:
                place(self, name, made_norm(d.norm, d.width, d.eps))
        self.parallel, self.residual_scale, self.dropout = d.parallel, d.residual_scale, d.dropout
        self.norm_place, self.layer_drop = d.norm_place, d.layer_drop
        self.mixer_dropout = d.dropout if d.attention_out_dropout is None else d.attention_out_dropout

    def _at(self, path: str) -> nn.Module:
        found = self._modules[path.partition(".")[0]]
        assert found is not None, "placed when the layer was made"
        return found

    @property
    def mixer(self) -> nn.Module:
        """What mixes positions: attention, in most layers."""
        found = self._at(self.mixer_path)
        return found.inner if isinstance(found, Around) else found

    @property
    def net(self) -> nn.Module:
        """The net behind it."""
        if not self.net_path:
            return self._own_net()
        found = self._at(self.net_path)
        return found.inner if isinstance(found, Around) else found

    def norms(self) -> Norms:
        """The norms before and behind attention, and before and behind the net; None where there is none."""
        before, behind, before_net, behind_net = (self._modules[n] if n else None for n in self.norm_names)
        return before, behind, before_net, behind_net

    def added(self, y: Tensor) -> Tensor:
        """What of the net's result is added to the stream."""
        return self._scaled(F.dropout(y, self.dropout, self.training) if self.dropout else y)

    def added_by_mixer(self, y: Tensor) -> Tensor:
        """What of attention's result is added to the stream."""
        return self._scaled(F.dropout(y, self.mixer_dropout, self.training) if self.mixer_dropout else y)

    def _scaled(self, y: Tensor) -> Tensor:
        return y if self.residual_scale == 1.0 else y * self.residual_scale

    def left_out(self) -> bool:
        """Whether this run leaves the layer out: Fan et al. 2019, arXiv:1909.11556."""
        return self.training and float(votive.rand(())) < self.layer_drop

    def on_stream(
        self, x: Tensor, rope: Rotate, mask: AttentionMask, cache: nn.KVCache | None, weights: Weights
    ) -> tuple[Tensor, Tensor]:
        """`deferred` where norms are of the stream itself: there is nothing that the next norm could add."""
        norm, _, net_norm, _ = self.norms()
        assert norm is not None, "norms of the stream are there"
        assert net_norm is not None, "norms of the stream are there"
        mixer = self._at(self.mixer_path)
        if self.norm_place == "stream":
            x = norm(x)
            x = net_norm(x + self.added_by_mixer(mixer(x, rope, mask, cache, weights)))
            return x, self.added(self._call_net(x))
        x = norm(x + self.added_by_mixer(mixer(x, rope, mask, cache, weights)))
        x = net_norm(x + self.added(self._call_net(x)))
        return x, votive.zeros_like(x)

    def _call_net(self, x: Tensor) -> Tensor:
        return self._at(self.net_path)(x) if self.net_path else self._own_net().forward(x)

    def _own_net(self) -> nn.Module:
        """The net whose products are the layer's own children, as they are now: somebody may have put others there."""
        net = self.__dict__["_net"]
        if net.training != self.training:  # what is written would end a compiled graph
            net.training = self.training
        for name in net._modules:
            if net._modules[name] is not self._modules[name]:
                net._modules[name] = self._modules[name]
        return net

    def forward(
        self, x: Tensor, rope: Rotate, mask: AttentionMask, cache: nn.KVCache | None = None, weights: Weights = None
    ) -> Tensor:
        if opens(self.layer_idx):
            if self.layer_drop and self.left_out():
                return x
            mixer = self._at(self.mixer_path)
            return open_layer(
                f"layers.{self.layer_idx}",
                x,
                lambda y: mixer(y, rope, mask, cache, weights),
                self._call_net,
                self.norms(),
                getattr(self.mixer, "counts", (0, 0, 0)),
                self.added,
                parallel=self.parallel,
                added_by_attention=self.added_by_mixer,
                norm_place=self.norm_place,
            )
        x, change = self.deferred(x, None, rope, mask, cache, weights)
        return x + change

    def deferred(
        self,
        x: Tensor,
        change: Tensor | None,
        rope: Rotate,
        mask: AttentionMask,
        cache: nn.KVCache | None,
        weights: Weights,
    ) -> tuple[Tensor, Tensor]:
        """The stream and what is still to be added to it: the next norm adds it on its way."""
        if self.layer_drop and self.left_out():
            return x, votive.zeros_like(x) if change is None else change
        if self.norm_place != "before":
            return self.on_stream(x if change is None else x + change, rope, mask, cache, weights)
        before, behind, before_net, behind_net = self.norms()
        x, read = _normed(x, change, before)
        y = self._at(self.mixer_path)(read, rope, mask, cache, weights)
        y = self.added_by_mixer(y if behind is None else behind(y))
        if self.parallel:
            z = read if before_net is None else before_net(x)
        else:
            # A router does more with its input than a product.
            x, z = _normed(x, y, before_net, exact=isinstance(self.net, Mixture))
        z = self._call_net(z)
        z = self.added(z if behind_net is None else behind_net(z))
        return x, y + z if self.parallel else z


def _normed(x: Tensor, change: Tensor | None, norm: nn.Module | None, exact: bool = False) -> tuple[Tensor, Tensor]:
    """The stream with a change added, and what is read of it."""
    if norm is not None:
        return add_norm(x, change, norm, exact=exact)
    x = x if change is None else x + change
    return x, x


def sees(d: Design, i: int, layer: nn.Module) -> tuple[int | None, int | None]:
    """The window and the chunk within which layer `i` looks: its attention's own, which somebody may have changed."""
    mixer = layer.mixer if isinstance(layer, DecoderLayer) else None
    return (mixer.window, mixer.chunk) if isinstance(mixer, DecoderAttention) else (d.window(i), d.chunk(i))
