"""The towers of Qwen2-VL and Qwen2.5-VL: patches of pictures of any size, turned by their places. Know no texts.

Patches of all pictures stand in one row; those of a frame, or of a window, see each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

import votive
from votive import nn

from ..tensor import Tensor
from .activations import activation
from .attention import AttentionMask, attend
from .clip_sides import CLIPMLP
from .config import Config
from .output import EncoderOutput
from .pretrained import PreTrainedModel
from .qwen2_vl_config import Qwen2_5_VLVisionConfig, Qwen2VLVisionConfig

Grids = Sequence[Sequence[int]]  # for each picture: frames, rows and columns of patches


class Segments:
    """Runs of positions that see each other only, gathered by their lengths.

    >>> from votive.models.qwen2_vl_tower import Segments
    >>> x = votive.ones(5, 1, 2)
    >>> Segments([2, 3], "cpu").attend(x, x, x).shape
    votive.Size([5, 1, 2])
    """

    def __init__(self, lengths: Sequence[int], device: votive.device | str) -> None:
        starts = np.cumsum([0, *lengths])
        by_length: dict[int, list[int]] = {}
        for start, length in zip(starts.tolist(), lengths, strict=False):
            by_length.setdefault(length, []).append(start)
        rows = [np.add.outer(np.array(first), np.arange(length)) for length, first in by_length.items() if length]
        order = np.concatenate([r.reshape(-1) for r in rows])
        self.rows = [votive.from_numpy(r).to(device) for r in rows]
        self.back = votive.from_numpy(np.argsort(order)).to(device)

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Any:
        """Attention of (positions, heads, features) within the runs."""
        found = []
        for at in self.rows:  # (runs, length)
            a, b, c = (part[at].transpose(1, 2) for part in (q, k, v))  # (runs, heads, length, features)
            found.append(attend(a, b, c, AttentionMask()).transpose(1, 2).flatten(0, 1))
        return votive.cat(found)[self.back]


def patch_places(grids: Grids, merge: int) -> np.ndarray:
    """Row and column of each patch, (patches, 2); patches that are merged to one stand beside each other.

    >>> from votive.models.qwen2_vl_tower import patch_places
    >>> patch_places([(1, 2, 4)], 2).tolist()[:5]
    [[0, 0], [0, 1], [1, 0], [1, 1], [0, 2]]
    """
    found = []
    for frames, height, width in grids:
        if height % merge or width % merge:
            raise ValueError(
                f"a picture of {height} x {width} patches does not split into groups of {merge} x {merge}."
            )
        y, x = np.mgrid[0:height, 0:width]
        both = np.stack([y, x], -1).reshape(height // merge, merge, width // merge, merge, 2)
        found.append(np.tile(both.transpose(0, 2, 1, 3, 4).reshape(-1, 2), (frames, 1)))
    return np.concatenate(found)


def windows(grids: Grids, side: int) -> tuple[np.ndarray, list[int]]:
    """An order of groups of patches by windows of `side` x `side` groups, and how many each window has.

    >>> from votive.models.qwen2_vl_tower import windows
    >>> order, counts = windows([(1, 2, 3)], 2)
    >>> order.tolist(), counts
    ([0, 1, 3, 4, 2, 5], [4, 2])
    """
    order, counts, first = [], [], 0
    for frames, height, width in grids:
        index = first + np.arange(frames * height * width).reshape(frames, height, width)
        for frame in index:
            for y in range(0, height, side):
                for x in range(0, width, side):
                    part = frame[y : y + side, x : x + side].reshape(-1)
                    order.append(part)
                    counts.append(len(part))
        first += index.size
    return np.concatenate(order), counts


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Any:
    a, b = x.float().chunk(2, -1)
    return votive.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)


class QwenPatches(nn.ModuleDict):
    """A vector for each patch of `temporal_patch_size` frames, which come flat."""

    def __init__(self, config: Qwen2VLVisionConfig | Qwen2_5_VLVisionConfig) -> None:
        size = (config.temporal_patch_size, config.patch_size, config.patch_size)
        super().__init__({"proj": nn.Conv3d(config.in_channels, config.width, size, stride=size, bias=False)})

    def forward(self, x: Tensor) -> Tensor:
        proj = self["proj"]
        return proj(x.view(-1, proj.in_channels, *proj.kernel_size)).flatten(1)


class QwenVisionAttention(nn.Module):
    """Attention of patches within their runs, turned by row and column."""

    def __init__(self, config: Qwen2VLVisionConfig | Qwen2_5_VLVisionConfig) -> None:
        super().__init__()
        self.heads = config.num_heads
        self.qkv, self.proj = nn.Linear(config.width, 3 * config.width), nn.Linear(config.width, config.width)

    def forward(self, x: Tensor, angles: tuple[Tensor, Tensor], segments: Segments) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).unbind(1)  # (N, H, D)
        q, k = _turned(q, *angles), _turned(k, *angles)
        return self.proj(segments.attend(q, k, v).flatten(1))


class QwenGatedMLP(nn.Module):
    """`down_proj(act(gate_proj(x)) * up_proj(x))`, with biases."""

    def __init__(self, config: Qwen2_5_VLVisionConfig) -> None:
        super().__init__()
        width, inner = config.width, config.intermediate_size
        self.gate_proj, self.up_proj = nn.Linear(width, inner), nn.Linear(width, inner)
        self.down_proj, self.act_fn = nn.Linear(inner, width), activation(config.hidden_act)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class QwenVisionBlock(nn.Module):
    """Norm and attention, norm and MLP, each added to what came in."""

    def __init__(self, config: Qwen2VLVisionConfig | Qwen2_5_VLVisionConfig) -> None:
        super().__init__()
        self.norm1, self.norm2 = _norm(config), _norm(config)
        self.attn = QwenVisionAttention(config)
        if isinstance(config, Qwen2_5_VLVisionConfig):
            self.mlp: nn.Module = QwenGatedMLP(config)
        else:
            self.mlp = CLIPMLP(config, config.width, int(config.width * config.mlp_ratio))

    def forward(self, x: Tensor, angles: tuple[Tensor, Tensor], segments: Segments) -> Tensor:
        x = x + self.attn(self.norm1(x), angles, segments)
        return x + self.mlp(self.norm2(x))


def _norm(config: Qwen2VLVisionConfig | Qwen2_5_VLVisionConfig) -> nn.Module:
    kind = nn.RMSNorm if isinstance(config, Qwen2_5_VLVisionConfig) else nn.LayerNorm
    return kind(config.width, eps=1e-6)


class QwenMerger(nn.Module):
    """Groups of patches become one vector each, of the decoder's width."""

    def __init__(self, config: Qwen2VLVisionConfig | Qwen2_5_VLVisionConfig) -> None:
        super().__init__()
        inner = config.width * config.spatial_merge_size**2
        self.ln_q = _norm(config)
        self.mlp = nn.Sequential(nn.Linear(inner, inner), nn.GELU(), nn.Linear(inner, config.out_width))

    def forward(self, x: Tensor) -> Tensor:
        return self.mlp(self.ln_q(x).view(-1, self.mlp[0].in_features))


class QwenTower(PreTrainedModel):
    """A tower: `pooler_output` (groups, width) is what the decoder reads.

    >>> from votive.models.qwen2_vl import Qwen2VisionTransformerPretrainedModel, Qwen2VLVisionConfig
    >>> config = Qwen2VLVisionConfig(depth=1, embed_dim=8, hidden_size=6, num_heads=2, patch_size=2)
    >>> model = Qwen2VisionTransformerPretrainedModel(config)
    >>> model(votive.ones(8, 24), votive.tensor([[1, 2, 4]])).pooler_output.shape
    votive.Size([2, 6])
    """

    config_class: ClassVar[type[Config]] = Qwen2VLVisionConfig
    base_model_prefix = "visual"

    def __init__(self, config: Qwen2VLVisionConfig | Qwen2_5_VLVisionConfig) -> None:
        super().__init__(config)
        self.patch_embed = QwenPatches(config)
        self.blocks = nn.ModuleList(QwenVisionBlock(config) for _ in range(config.depth))
        self.merger = QwenMerger(config)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """What makes vectors of patches."""
        return self.patch_embed

    def angles(self, grids: Grids, device: votive.device) -> tuple[Tensor, Tensor]:
        """Cosines and sines, (patches, 1, pairs): the first half turns by rows, the second by columns."""
        config = self.config
        half = config.width // config.num_heads // 2
        slow = 1.0 / config.theta ** (np.arange(0, half, 2, dtype=np.float32) / half)
        places = patch_places(grids, config.spatial_merge_size).astype(np.float32)
        angles = (places[:, :, None] * slow.astype(np.float32)).reshape(len(places), 1, -1)
        return votive.from_numpy(np.cos(angles)).to(device), votive.from_numpy(np.sin(angles)).to(device)

    def forward(self, hidden_states: Tensor, grid_thw: Tensor) -> EncoderOutput:
        """Patches (patches, features) of pictures whose `grid_thw` (pictures, 3) are frames, rows and columns."""
        grids = [tuple(map(int, row)) for row in grid_thw.tolist()]
        config, count = self.config, sum(t * h * w for t, h, w in grids)
        if hidden_states.dim() != 2 or hidden_states.shape[0] != count:
            raise ValueError(
                f"{type(self).__name__}: pixel_values must be ({count}, features of a patch) for grid_thw={grids}, "
                f"got {tuple(hidden_states.shape)}."
            )
        x = self.patch_embed(hidden_states.to(self.dtype))
        cos, sin = self.angles(grids, x.device)
        frames = Segments([h * w for t, h, w in grids for _ in range(t)], x.device)
        if not isinstance(config, Qwen2_5_VLVisionConfig):
            for block in self.blocks:
                x = block(x, (cos, sin), frames)
            return EncoderOutput(last_hidden_state=x, pooler_output=self.merger(x))
        merge = config.spatial_merge_size
        unit, side = merge**2, config.window_size // merge // config.patch_size
        order, counts = windows([(t, h // merge, w // merge) for t, h, w in grids], side)
        near = Segments([n * unit for n in counts], x.device)
        at = votive.from_numpy((order[:, None] * unit + np.arange(unit)).reshape(-1)).to(x.device)
        x, cos, sin = x[at], cos[at], sin[at]
        for i, block in enumerate(self.blocks):
            x = block(x, (cos, sin), frames if i in config.fullatt_block_indexes else near)
        back = votive.from_numpy(np.argsort(order)).to(x.device)
        return EncoderOutput(last_hidden_state=x, pooler_output=self.merger(x)[back])
