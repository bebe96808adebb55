"""Eight-bit codes for states of optimizers: blocks of 256 share a scale, a fixed map gives the rest. No update rule.

Dettmers et al. 2022, "8-bit Optimizers via Block-wise Quantization" (arXiv:2110.02861): dynamic tree quantization. A
code is a sign (or none), a power of ten told by how many zeros it begins with, and a fraction of the bits left.
"""

from __future__ import annotations

from functools import cache

from ..core import dtype as dt
from ..ops.registry import F
from ..tensor import Tensor

BLOCK = 256
# Numbers that are encoded at a time, whose positions take four bytes each.
_PART = 1 << 20


@cache
def dynamic_map(signed: bool) -> tuple[float, ...]:
    """The 256 numbers between -1 (or 0) and 1 that codes stand for, in order.

    >>> from votive.optim.dynamic_map import dynamic_map
    >>> signed, unsigned = dynamic_map(True), dynamic_map(False)
    >>> len(signed), signed[127], signed[-1], len(unsigned), unsigned[0]
    (256, 0.0, 1.0, 256, 0.0)
    """
    found = [0.0, 1.0]
    for power in range(7):
        count = 2**power if signed else 2 ** (power + 1)
        step = 0.9 / count
        for i in range(count):
            # The middle of each part of the interval from a tenth to one.
            middle = (0.1 + i * step + 0.1 + (i + 1) * step) / 2 * 10.0 ** (power - 6)
            found += [middle, -middle] if signed else [middle]
    return tuple(sorted(found))


@cache
def _tables(signed: bool, device: str) -> tuple[Tensor, Tensor]:
    """The map, and the borders between neighbours."""
    values = F.tensor(dynamic_map(signed), dtype=dt.float32)
    borders = (values[1:] + values[:-1]) / 2
    return F.to(values, device), F.to(borders, device)


def zeros(like: Tensor, signed: bool) -> tuple[Tensor, Tensor]:
    """Codes and scales of a state of zeros."""
    code = dynamic_map(signed).index(0.0)
    codes = F.full(tuple(like.shape), code, dtype=dt.uint8, device=like.device)
    return codes, F.zeros((-(-like.numel() // BLOCK),), dtype=dt.float32, device=like.device)


def decode(codes: Tensor, absmax: Tensor, signed: bool) -> Tensor:
    """The float32 numbers that codes stand for.

    >>> from votive.optim.dynamic_map import decode, encode_, zeros
    >>> x = votive.tensor([0.5, -1.0, 0.0, 1e-4])
    >>> codes, absmax = zeros(x, signed=True)
    >>> encode_(codes, absmax, x, signed=True)
    >>> decode(codes, absmax, signed=True)
    tensor([ 4.9609e-01, -9.9297e-01,  0.0000e+00,  1.0000e-04])
    """
    values, _ = _tables(signed, str(codes.device))
    flat = F.index_select(values, 0, F.to(codes.reshape(-1), dt.int32))
    whole = flat.shape[0] // BLOCK * BLOCK
    flat[:whole].reshape(-1, BLOCK).mul_(absmax[: whole // BLOCK, None])
    if whole < flat.shape[0]:
        flat[whole:].mul_(absmax[-1])
    return flat.reshape(codes.shape)


def encode_(codes: Tensor, absmax: Tensor, x: Tensor, signed: bool) -> None:
    """Write the nearest codes of float32 numbers, and the largest size in each block."""
    _, borders = _tables(signed, str(codes.device))
    flat, out = x.reshape(-1), codes.view(-1)
    for start in range(0, flat.shape[0], _PART):
        part = flat[start : start + _PART]
        whole = part.shape[0] // BLOCK * BLOCK
        first = start // BLOCK
        for begin, end, width in ((0, whole, BLOCK), (whole, part.shape[0], part.shape[0] - whole)):
            if begin == end:
                continue
            rows = part[begin:end].reshape(-1, width)
            largest = rows.abs().amax(1)
            at = first + begin // BLOCK
            absmax[at : at + largest.shape[0]].copy_(largest)
            scaled = rows / largest.clamp(min=dt.finfo(dt.float32).tiny)[:, None]
            found = F.bucketize(scaled.reshape(-1), borders, out_int32=True)
            out[start + begin : start + end].copy_(F.to(found, dt.uint8))
