"""Where a model that reads patches looks: maps of its attention over the picture, and rollout.

Rollout follows attention through all layers: with half of each layer's attention taken for the
shortcut, the product of the layers says which patches reached a token (Abnar & Zuidema 2020,
arXiv:2005.00928). Knows no model class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import votive

from ..nn import Module
from ..tensor import Tensor
from . import values
from .address import Patterns
from .attention_maps import AttentionMap, attention_maps
from .patches import PatchGrid, patches_of
from .pixels import Pixels, as_picture, grown, over
from .plots import Plottable

FUSIONS = ("mean", "max", "min")


@dataclass(frozen=True)
class PatchAttention(Plottable):
    """The attention of each layer over the patches of pictures.

    `layers` are those of the encoder, `cross` those of a decoder that looks at the patches.
    """

    layers: list[AttentionMap]
    cross: list[AttentionMap]
    grid: PatchGrid
    picture: Any  # (samples, channels, height, width)

    def __len__(self) -> int:
        return len(self.layers)

    def map(
        self, layer: int = -1, head: int | None = None, query: int = 0, sample: int = 0, cross: bool = False
    ) -> Tensor:
        """How much a token looks at each patch, (height, width); all heads' mean without a head.

        Token 0 is the class token where there is one; `cross` means a token of the decoder.
        """
        found = self.cross if cross else self.layers
        what = "cross attention" if cross else "attention"
        if not found or not -len(found) <= layer < len(found):
            raise IndexError(f"PatchAttention: there is no layer {layer} of {len(found)} of {what}.")
        weights = found[layer].weights(head, query, sample)[0, :, 0].mean(0)
        return self.grid.maps(weights)

    def rollout(self, sample: int = 0, fusion: str = "mean", discard: float = 0.0) -> Tensor:
        """How much each patch reached the first token through all layers, (height, width).

        `fusion` joins the heads: "mean", "max" or "min". `discard` leaves out that share of the
        smallest weights of each layer, which makes maps clearer.
        """
        if fusion not in FUSIONS:
            raise ValueError(f"rollout: fusion must be one of {FUSIONS}, got {fusion!r}.")
        if not 0.0 <= discard < 1.0:
            raise ValueError(f"rollout: discard must be a share from 0 to below 1, got {discard}.")
        total: Any = None
        for layer in self.layers:
            a = layer.weights(samples=sample)[0]
            a = {"mean": a.mean(0), "max": a.amax(0), "min": a.amin(0)}[fusion]
            if discard:
                flat = a.flatten()
                dropped = flat.topk(int(flat.numel() * discard), largest=False).indices
                # What the class token sees of itself is no patch, and stays.
                keep = flat.new_ones(flat.numel()).scatter(0, dropped, 0.0)
                keep[0] = 1.0
                a = (flat * keep).view(a.shape)
            a = a + votive.eye(a.shape[0], dtype=a.dtype, device=a.device)
            a = a / a.sum(-1, keepdim=True)
            total = a if total is None else a @ total
        if self.grid.first:
            return self.grid.maps(total[0])
        return self.grid.maps(total.mean(0))  # without a token of its own, all together

    def to_dict(self) -> dict[str, Any]:
        """Rollout of each sample, and the mean map of each layer."""
        samples = range(self.picture.shape[0])
        return {
            "grid": [self.grid.height, self.grid.width],
            "tokens_before": self.grid.first,
            "layers": [m.address for m in self.layers],
            "cross": [m.address for m in self.cross],
            "rollout": [self.rollout(s).tolist() for s in samples],
            "maps": [[self.map(i, sample=s).tolist() for i in range(len(self))] for s in samples],
        }

    def figure(
        self, what: str = "rollout", layer: int = -1, head: int | None = None, query: int = 0, sample: int = 0
    ) -> Pixels:
        """The picture under one of the maps: "rollout", "map" or "cross"."""
        if what not in ("rollout", "map", "cross"):
            raise ValueError(f"PatchAttention: {what!r} is none of rollout, map, cross.")
        if what == "rollout":
            found, title = self.rollout(sample), "attention rollout"
        else:
            found = self.map(layer, head, query, sample, cross=what == "cross")
            of = self.cross if what == "cross" else self.layers
            which = "mean of heads" if head is None else f"head {head}"
            title = f"{of[layer].address.partition('/')[0]}, {which}, token {query}"
        return shown_over(self.picture[sample], found, title)

    def __repr__(self) -> str:
        grid = f"{self.grid.height} x {self.grid.width}"
        more = f" and {len(self.cross)} that look at them" if self.cross else ""
        return f"<attention of {len(self)} layers over {grid} patches{more}>"


def shown_over(picture: Tensor, found: Tensor, title: str) -> Pixels:
    """A map over a picture, from its least to its most."""
    low, high = float(found.min()), float(found.max())
    heat = ((found - low) / ((high - low) or 1.0)).float().cpu().numpy()
    ground = as_picture(picture)
    heat = grown(heat, *ground.shape[:2])
    return Pixels(over(ground, heat), title, legend=f"from {low:.3g} to {high:.3g}")


def patch_attention(model: Module, *args: object, at: Patterns | None = None, **kwargs: Any) -> PatchAttention:
    """Run a model that reads patches, and give its attention over them.

    The picture is the first argument with four dimensions; `at` are patterns of calls, such as
    "vision_model.**", by default all attention over the patches.

    >>> _ = votive.manual_seed(0)
    >>> config = votive.models.ViTConfig(image_size=32, patch_size=8, hidden_size=8,
    ...     intermediate_size=16, num_hidden_layers=2, num_attention_heads=2)
    >>> model = votive.models.ViTModel(config).eval()
    >>> found = votive.glass.patch_attention(model, votive.rand(1, 3, 32, 32))
    >>> found, found.map(layer=0, head=1).shape
    (<attention of 2 layers over 4 x 4 patches>, votive.Size([4, 4]))
    """
    picture = next((t for _, t in values.tensors((args, kwargs)) if t.dim() == 4), None)
    if picture is None:
        raise ValueError("patch_attention: give the model pictures (batch, channels, height, width).")
    grid = patches_of(model, args, kwargs).grid()
    if grid is None:
        raise LookupError(
            f"patch_attention: {type(model).__name__} ran no attention over patches that a convolution made."
        )
    found = attention_maps(model, *args, at=at, **kwargs).maps
    square = [m for m in found if m.shape[2] == m.shape[3] == grid.tokens]
    cross = [m for m in found if m.shape[3] == grid.tokens != m.shape[2]]
    return PatchAttention(square, cross, grid, picture.detach())
