"""Positions that are not learned and no rotation: biases that fall with the distance, sines. Knows no layer."""

from __future__ import annotations

import math
from collections.abc import Callable

import votive

from ...core import dtype as dt
from ...tensor import Tensor
from .design import Design


def alibi_slopes(heads: int) -> tuple[float, ...]:
    """The slopes of Press et al. 2021, arXiv:2108.12409, a head each; heads beyond a power of two take those between.

    >>> votive.models.decoder.positions.alibi_slopes(2)
    (0.0625, 0.00390625)
    """
    whole = 2 ** math.floor(math.log2(heads))
    base = 2.0 ** -(2.0 ** -(math.log2(whole) - 3))
    slopes = [base**i for i in range(1, whole + 1)]
    more = 2.0 ** -(2.0 ** -(math.log2(2 * whole) - 3))
    return (*slopes, *(more**i for i in range(1, 2 * (heads - whole), 2)))


def alibi(
    d: Design, queries: int, keys: int, real: Tensor | None, dtype: votive.dtype, device: votive.device
) -> Tensor:
    """What is added to scores (batch, heads, queries, keys), of slopes and of where keys are.

    >>> from votive.models.decoder.positions import alibi
    >>> design = votive.models.BloomConfig(n_head=1).design
    >>> alibi(design, 1, 3, None, votive.float32, votive.device("cpu"))
    tensor([[[[0.0000, 0.0039, 0.0078]]]])
    """
    at = votive.arange(keys, device=device).view(1, 1, keys)
    last: int | Tensor = keys - 1
    if real is not None and real.dim() == 4:
        # Whom the newest query sees tells padding, and where the text ends in memory for longer ones.
        real = real[:, 0, -1] if real.dtype == dt.bool_ else real[:, 0, -1] == 0
        last = (at * real.long().unsqueeze(1)).amax(-1, keepdim=True)
    if not d.alibi_counts:
        at = at - last
    elif real is not None:
        # Padding has no place among the positions.
        at = ((real.long().cumsum(-1) - 1) * real.long()).unsqueeze(1)  # (B, 1, K)
    slopes = votive.tensor(list(d.alibi), dtype=votive.float32, device=device).view(1, -1, 1)
    if d.alibi_rounded:
        bias = (slopes.to(votive.bfloat16) * at.to(votive.bfloat16)).to(dtype)
    else:
        bias = (slopes * at).to(dtype)
    if d.alibi_scale != 1.0:
        bias = bias * d.alibi_scale
    return bias.unsqueeze(2).expand(bias.shape[0], len(d.alibi), queries, keys)


def sines(position_ids: Tensor, d: Design) -> Tensor:
    """Sines of positions, then cosines, by geometric steps, as fairseq has them: Vaswani et al. 2017, section 3.5.

    >>> from votive.models.decoder.positions import sines
    >>> sines(votive.tensor([0]), votive.models.XGLMConfig(d_model=4, attention_heads=1).design)
    tensor([[ 0.9093,  0.0002, -0.4161,  1.0000]])
    """
    half = d.width // 2
    steps = (
        votive.arange(half, dtype=votive.float32, device=position_ids.device) * (-math.log(10000) / (half - 1))
    ).exp()
    rows = position_ids + d.places_offset
    angles = rows.unsqueeze(-1).to(votive.float32) * steps
    found = votive.cat([angles.sin(), angles.cos()], -1)
    if d.width % 2:
        found = votive.cat([found, votive.zeros_like(found[..., :1])], -1)
    # The row of padding stays zero, whichever position it is.
    return found if d.padding is None else found.masked_fill((rows == d.padding).unsqueeze(-1), 0.0)


def angles(position_ids: Tensor, d: Design) -> Tensor:
    """Sines of positions in the first half of the features, cosines in the second, a frequency for each pair.

    >>> from votive.models.decoder.positions import angles
    >>> angles(votive.tensor([0]), votive.models.CTRLConfig(n_embd=4, n_head=1).design)
    tensor([[0., 0., 1., 1.]])
    """
    i = votive.arange(d.width, dtype=votive.float32, device=position_ids.device)
    rates = 1 / votive.pow(10000.0, 2 * votive.div(i, 2, rounding_mode="floor") / d.width)
    turned = position_ids.unsqueeze(-1).to(votive.float32) * rates
    return votive.cat([turned[..., 0::2].sin(), turned[..., 1::2].cos()], -1)


COMPUTED: dict[str, Callable[[Tensor, Design], Tensor]] = {"sines": sines, "angles": angles}
