"""The feature pyramid network. Knows feature maps by name, no backbone."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from ... import nn
from ...nn import functional as NF
from ...tensor import Tensor
from ..types import Layer
from .layers import Conv2dNormActivation


class ExtraFPNBlock(nn.Module):
    """Base of blocks that add levels to a pyramid: `forward(results, x, names)` returns both lists.

    >>> issubclass(votive.vision.ops.LastLevelMaxPool, votive.vision.ops.ExtraFPNBlock)
    True
    """

    def forward(self, results: list[Tensor], x: list[Tensor], names: list[str]) -> tuple[list[Tensor], list[str]]:
        raise NotImplementedError(f"{type(self).__name__}: forward is to be written.")


class FeaturePyramidNetwork(nn.Module):
    """Feature maps of equal channels, coarse ones added to fine ones (Lin et al. 2017).

    >>> pyramid = votive.vision.ops.FeaturePyramidNetwork([4, 8], 5)
    >>> maps = {"fine": votive.zeros(1, 4, 8, 8), "coarse": votive.zeros(1, 8, 4, 4)}
    >>> {name: tuple(m.shape) for name, m in pyramid(maps).items()}
    {'fine': (1, 5, 8, 8), 'coarse': (1, 5, 4, 4)}
    """

    _version = 2

    def __init__(
        self,
        in_channels_list: Sequence[int],
        out_channels: int,
        extra_blocks: ExtraFPNBlock | None = None,
        norm_layer: Layer | None = None,
    ) -> None:
        super().__init__()
        if 0 in in_channels_list:
            raise ValueError(f"FeaturePyramidNetwork: a map has no channels, {in_channels_list}.")
        if extra_blocks is not None and not isinstance(extra_blocks, ExtraFPNBlock):
            raise TypeError(
                "FeaturePyramidNetwork: extra_blocks should be of type ExtraFPNBlock, not "
                f"{type(extra_blocks).__name__}."
            )

        def block(channels: int, size: int) -> Conv2dNormActivation:
            return Conv2dNormActivation(channels, out_channels, size, norm_layer=norm_layer, activation_layer=None)

        self.inner_blocks = nn.ModuleList([block(c, 1) for c in in_channels_list])
        self.layer_blocks = nn.ModuleList([block(out_channels, 3) for _ in in_channels_list])
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_uniform_(m.weight, a=1)
                if m.bias is not None:
                    nn.init.constant_(m.bias, 0)
        self.extra_blocks = extra_blocks

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: dict[str, Any], *args: Any) -> None:
        # Before version 2 a block was a bare convolution.
        if (local_metadata.get("version") or 1) < 2:
            for group in ("inner_blocks", "layer_blocks"):
                for i in range(len(self.inner_blocks)):
                    for kind in ("weight", "bias"):
                        old = f"{prefix}{group}.{i}.{kind}"
                        if old in state_dict:
                            state_dict[f"{prefix}{group}.{i}.0.{kind}"] = state_dict.pop(old)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)

    def forward(self, x: Mapping[str, Tensor]) -> OrderedDict[str, Tensor]:
        names, maps = list(x), list(x.values())
        if len(maps) != len(self.inner_blocks):
            raise ValueError(
                f"FeaturePyramidNetwork: {len(self.inner_blocks)} feature maps are expected, got {len(maps)}: {names}."
            )
        results: list[Any] = []
        above: Any = None
        for i in reversed(range(len(maps))):
            inner = self.inner_blocks[i](maps[i])
            if above is not None:
                inner = inner + NF.interpolate(above, size=tuple(inner.shape[-2:]), mode="nearest")
            above = inner
            results.insert(0, self.layer_blocks[i](inner))
        if self.extra_blocks is not None:
            results, names = self.extra_blocks(results, maps, names)
        return OrderedDict(zip(names, results, strict=True))


class LastLevelMaxPool(ExtraFPNBlock):
    """One more level: every second element of the coarsest one.

    >>> block = votive.vision.ops.LastLevelMaxPool()
    >>> levels, names = block([votive.zeros(1, 2, 4, 4)], [], ["0"])
    >>> levels[-1].shape, names
    (votive.Size([1, 2, 2, 2]), ['0', 'pool'])
    """

    def forward(self, results: list[Tensor], x: list[Tensor], names: list[str]) -> tuple[list[Tensor], list[str]]:
        return [*results, NF.max_pool2d(results[-1], 1, 2, 0)], [*names, "pool"]


class LastLevelP6P7(ExtraFPNBlock):
    """Two more levels by convolutions of stride 2, as in RetinaNet.

    >>> block = votive.vision.ops.LastLevelP6P7(4, 4)
    >>> levels, names = block([votive.zeros(1, 4, 8, 8)], [votive.zeros(1, 4, 8, 8)], ["0"])
    >>> [tuple(m.shape[-2:]) for m in levels], names
    ([(8, 8), (4, 4), (2, 2)], ['0', 'p6', 'p7'])
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.p6 = nn.Conv2d(in_channels, out_channels, 3, 2, 1)
        self.p7 = nn.Conv2d(out_channels, out_channels, 3, 2, 1)
        for module in (self.p6, self.p7):
            nn.init.kaiming_uniform_(module.weight, a=1)
            nn.init.constant_(module.bias, 0)
        self.use_P5 = in_channels == out_channels

    def forward(self, results: list[Tensor], x: list[Tensor], names: list[str]) -> tuple[list[Tensor], list[str]]:
        p6 = self.p6(results[-1] if self.use_P5 else x[-1])
        return [*results, p6, self.p7(NF.relu(p6))], [*names, "p6", "p7"]
