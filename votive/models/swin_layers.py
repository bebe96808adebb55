"""Swin's layers: windows of patches, that attend within themselves and move by half in every other layer."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

import votive
from votive import nn
from votive.nn import functional as F

from ..tensor import Tensor
from .attention import AttentionMask, Weights, self_attention
from .backbone import dropped_path, path_rates
from .encoder import DenseOutput, Intermediate, intermediate_output
from .stack import Trace
from .swin_config import SwinConfig
from .vit import Pair, masked, stretched

# What a patch is told to think of those that came beside it only by moving the windows; not infinity, in the paper's
# code as in files trained with it.
_APART = -100.0


@lru_cache(maxsize=32)
def window_rows(size: int) -> np.ndarray:
    """For each pair of places in a square window, the row of their distance in a table.

    >>> from votive.models.swin_layers import window_rows
    >>> window_rows(2)[0].tolist()
    [4, 3, 1, 0]
    """
    y, x = (a.reshape(-1) for a in np.mgrid[0:size, 0:size])
    down, right = y[:, None] - y[None, :] + size - 1, x[:, None] - x[None, :] + size - 1
    return down * (2 * size - 1) + right


@lru_cache(maxsize=32)
def apart_mask(height: int, width: int, window: int, shift: int) -> np.ndarray:
    """What is added to scores (windows, places, places) of a moved grid, whose ends have met in one window.

    >>> from votive.models.swin_layers import apart_mask
    >>> apart_mask(2, 4, 2, 1)[0].tolist()[0]
    [0.0, 0.0, -100.0, -100.0]
    """

    def bands(size: int) -> np.ndarray:
        at = np.arange(size)
        return (at >= size - window).astype(np.int64) + (at >= size - shift)

    region = bands(height)[:, None] * 3 + bands(width)[None, :]
    region = region.reshape(height // window, window, width // window, window).swapaxes(1, 2)
    region = region.reshape(-1, window * window)
    return np.where(region[:, :, None] != region[:, None, :], np.float32(_APART), np.float32(0))


class SwinEmbeddings(nn.Module):
    """Patches, normed, with positions if the configuration asks for them."""

    def __init__(self, config: SwinConfig, use_mask_token: bool = False) -> None:
        super().__init__()
        self.config, width = config, config.embed_dim
        self.patch_embeddings = nn.ModuleDict(
            {"projection": nn.Conv2d(config.num_channels, width, config.patches, stride=config.patches)}
        )
        self.mask_token = nn.Parameter(votive.zeros(1, 1, width)) if use_mask_token else None
        self.position_embeddings = None
        if config.use_absolute_embeddings:
            self.position_embeddings = nn.Parameter(votive.zeros(1, config.grid[0] * config.grid[1], width))
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(
        self, pixel_values: Tensor, bool_masked_pos: Tensor | None = None, interpolate: bool = False
    ) -> tuple[Tensor, Pair]:
        """The patches (batch, patches, features), and how they stand; pictures are filled up with zeros."""
        (high, wide), (height, width) = self.config.patches, pixel_values.shape[2:]
        x = F.pad(pixel_values, (0, -width % wide, 0, -height % high))
        x = self.patch_embeddings["projection"](x)
        grid = (x.shape[2], x.shape[3])
        x = self.norm(x.flatten(2).transpose(1, 2))
        if bool_masked_pos is not None:
            x = masked(self, x, bool_masked_pos)
        if self.position_embeddings is not None:
            x = x + self.positions(self.position_embeddings, grid, interpolate)
        return self.dropout(x), grid

    def positions(self, learned: Tensor, grid: Pair, interpolate: bool) -> Tensor:
        """What is added for the places of the patches."""
        if grid == self.config.grid:
            return learned
        if not interpolate:
            raise ValueError(
                f"{type(self).__name__}: pictures have {grid[0]} x {grid[1]} patches, the model was made for "
                f"{self.config.grid[0]} x {self.config.grid[1]}; resize them, or pass interpolate_pos_encoding=True."
            )
        return stretched(learned, 0, self.config.grid, grid)


class SwinSelfAttention(nn.Module):
    """Attention within windows, with a bias for distances."""

    def __init__(self, config: SwinConfig, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.dropout, self.window = heads, config.attention_probs_dropout_prob, config.window_size
        self.query = nn.Linear(width, width, bias=config.qkv_bias)
        self.key = nn.Linear(width, width, bias=config.qkv_bias)
        self.value = nn.Linear(width, width, bias=config.qkv_bias)
        self.relative_position_bias_table = nn.Parameter(votive.zeros((2 * self.window - 1) ** 2, heads))

    def forward(self, x: Tensor, mask: Tensor | None, weights: Weights = None) -> Tensor:
        """Windows (batch · windows, places, features); `mask` (windows, places, places) is added to scores."""
        table: Tensor = self.relative_position_bias_table
        at = votive.from_numpy(window_rows(self.window)).to(table.device)
        bias = table[at].permute(2, 0, 1).unsqueeze(0)  # (1, heads, places, places)
        if mask is not None:
            bias = bias + mask.unsqueeze(1).to(bias.dtype)
            bias = bias.repeat(x.shape[0] // mask.shape[0], 1, 1, 1)
        dropout = self.dropout if self.training else 0.0
        projections = self.query, self.key, self.value
        return self_attention(x, projections, self.heads, AttentionMask(bias), dropout, weights)


class SwinLayer(nn.Module):
    """Norm and attention in windows, norm and MLP, each added to what came in."""

    def __init__(self, config: SwinConfig, width: int, heads: int, drop: float, moved: bool) -> None:
        super().__init__()
        inner, dropout = int(config.mlp_ratio * width), config.hidden_dropout_prob
        self.window, self.shift = config.window_size, config.window_size // 2 if moved else 0
        self.drop = drop
        self.layernorm_before = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.attention = nn.ModuleDict(
            {"self": SwinSelfAttention(config, width, heads), "output": DenseOutput(width, width, dropout)}
        )
        self.layernorm_after = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.intermediate = Intermediate(width, inner, config.hidden_act)
        self.output = DenseOutput(inner, width, dropout)

    def attended(self, x: Tensor, grid: Pair, whole: bool, weights: Weights) -> Tensor:
        """What attention adds: the grid is filled up, moved, cut into windows, and put together again."""
        (height, width), size, shift = grid, self.window, self.shift
        if not whole and min(grid) <= size:
            # One window as high or as wide as the grid: there is nowhere to move to.
            if min(grid) < size:
                raise ValueError(
                    f"{type(self).__name__}: a grid of {height} x {width} patches is smaller than a window of {size}; "
                    "give larger pictures, or make the model with a smaller window_size."
                )
            shift = 0
        B, _, C = x.shape
        x = self.layernorm_before(x).view(B, height, width, C)
        x = F.pad(x, (0, 0, 0, -width % size, 0, -height % size))
        high, wide = x.shape[1], x.shape[2]
        x = votive.roll(x, (-shift, -shift), (1, 2)) if shift else x
        x = x.view(B, high // size, size, wide // size, size, C).transpose(2, 3).reshape(-1, size * size, C)
        mask = votive.from_numpy(apart_mask(high, wide, size, shift)).to(x.device) if shift else None
        x = self.attention["output"](self.attention["self"](x, mask, weights))
        x = x.view(B, high // size, wide // size, size, size, C).transpose(2, 3).reshape(B, high, wide, C)
        x = votive.roll(x, (shift, shift), (1, 2)) if shift else x
        return x[:, :height, :width].reshape(B, height * width, C)

    def forward(self, x: Tensor, grid: Pair, whole: bool = False, weights: Weights = None) -> Tensor:
        x = x + dropped_path(self.attended(x, grid, whole, weights), self.drop, self.training)
        return x + intermediate_output(self.intermediate, self.output, self.layernorm_after(x))


class SwinPatchMerging(nn.Module):
    """Four neighbours as one patch of twice the features."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.reduction = nn.Linear(4 * width, 2 * width, bias=False)
        self.norm = nn.LayerNorm(4 * width)

    def forward(self, x: Tensor, grid: Pair) -> Tensor:
        x = x.view(x.shape[0], *grid, x.shape[2])
        x = F.pad(x, (0, 0, 0, grid[1] % 2, 0, grid[0] % 2))
        x = votive.cat([x[:, row::2, column::2] for column in (0, 1) for row in (0, 1)], -1)
        return self.reduction(self.norm(x.flatten(1, 2)))


class SwinStage(nn.Module):
    """Layers on one grid, and what halves it afterwards."""

    def __init__(self, config: SwinConfig, stage: int, drops: list[float]) -> None:
        super().__init__()
        width, heads = config.width_of(stage), config.num_heads[stage]
        self.blocks = nn.ModuleList(
            SwinLayer(config, width, heads, drop, moved=i % 2 == 1) for i, drop in enumerate(drops)
        )
        self.downsample = SwinPatchMerging(width) if stage < len(config.depths) - 1 else None

    def forward(self, x: Tensor, grid: Pair, whole: bool, weights: Weights) -> Tensor:
        """What the layers give; the encoder asks for the next grid."""
        shown: Weights = None if weights is None else []
        for block in self.blocks:
            x = block(x, grid, whole, shown)
        if weights is not None and shown:
            weights.append(shown[-1])  # a stage shows its last layer
        return x


@dataclass
class SwinRun:
    """The states of a run: `before` and `after` the grid is halved, each with its grid."""

    last: Tensor
    attentions: tuple[Tensor, ...] | None
    before: list[Tensor] = field(default_factory=list)
    after: list[Tensor] = field(default_factory=list)
    grids: list[Pair] = field(default_factory=list)

    def maps(self, before: bool = False) -> tuple[Tensor, ...]:
        """States as (batch, features, height, width): of the embeddings, then of each stage."""
        states = [self.after[0], *self.before] if before else self.after
        grids = [self.grids[0], *self.grids[:-1]] if before else self.grids
        return tuple(
            x.unflatten(1, grid).permute(0, 3, 1, 2).contiguous() for x, grid in zip(states, grids, strict=True)
        )


class SwinEncoder(nn.Module):
    """All stages, one after the other."""

    def __init__(self, config: SwinConfig) -> None:
        super().__init__()
        rates = iter(path_rates(config.drop_path_rate, sum(config.depths)))
        self.layers = nn.ModuleList(
            SwinStage(config, i, [next(rates) for _ in range(depth)]) for i, depth in enumerate(config.depths)
        )

    def forward(self, x: Tensor, grid: Pair, trace: Trace, whole: bool = False) -> SwinRun:
        """The stages' states of patches (batch, patches, features) that stand in a grid."""
        run = SwinRun(x, None, after=[x], grids=[grid])
        for stage in self.layers:
            x = stage(x, grid, whole, trace.weights)
            run.before.append(x)
            if stage.downsample is not None:
                x = stage.downsample(x, grid)
                grid = ((grid[0] + 1) // 2, (grid[1] + 1) // 2)
            run.after.append(x)
            run.grids.append(grid)
        run.last, run.attentions = x, trace.attentions
        return run
