"""Singular values and eigenvalues by rotations of pairs of columns (Jacobi), all pairs of a round at once.

A sweep is a tournament: in each round every column has one partner, and after n - 1 rounds it has met all others.
One-sided rotations: Hestenes, "Inversion of matrices by biorthogonalization and related results" (1958).
"""

from __future__ import annotations

import triton
import triton.language as tl

from ...device import math as m
from .lu import start

_SWEEPS = tl.constexpr(40)


@triton.jit
def _partners(round, players, N: tl.constexpr):
    """Whom each column meets in a round; columns that do not play meet themselves."""
    i = tl.arange(0, N)
    last = players - 1  # an odd number, so half of a number is a product modulo it
    other = (round + last - i % last) % last
    other = tl.where(other == i, last, other)
    other = tl.where(i == last, (round * (players // 2)) % last, other)
    return tl.where(i < players, other, i)


@triton.jit
def _of_partners(a, partner):
    """Columns in their partners' places."""
    return tl.gather(a, tl.broadcast_to(partner[None, :], a.shape), 1)


@triton.jit
def _angle(own, other, both, turn, partner, N: tl.constexpr):
    """(tau, sine) of the rotation that makes a pair orthogonal, for `_rotated`; partners have opposite ones."""
    i = tl.arange(0, N)
    zeta = m.f_div(other - own, 2 * tl.where(turn, both, 1.0))
    sign = tl.where((zeta > 0) | ((zeta == 0) & (i < partner)), 1.0, -1.0)
    size = tl.abs(zeta)
    far = size > 1048576.0  # where squares could leave the range, and 1 does not count any more
    near = tl.where(far, 1.0, size)
    below = tl.where(far, 2 * size, near + m.f_sqrt(1 + near * near))
    t = tl.where(turn, m.f_div(sign + tl.zeros_like(below), below), 0.0)
    c = m.f_div(tl.zeros_like(t) + 1.0, m.f_sqrt(1 + t * t))
    return m.f_div(c * t, 1 + c), c * t


@triton.jit
def _rotated(a, b, tau, s):
    """Columns after a rotation with those of their partners: c * a - s * b, where tau = s / (1 + c). It is written as a
    change of `a` (Rutishauser 1966, doi:10.1007/BF02165223): the rounding of c would pile up in hundreds of rotations.
    """
    return a - s[None, :] * (b + tau[None, :] * a)


@triton.jit
def _power_of_two(x):
    """The largest power of two up to a positive number; 1 where there is none to divide by."""
    if x.dtype == tl.float64:
        found = (x.to(tl.int64, bitcast=True) & 0x7FF0000000000000).to(tl.float64, bitcast=True)
    else:
        found = (x.to(tl.int32, bitcast=True) & 0x7F800000).to(tl.float32, bitcast=True)
    return tl.where((found > 0) & (found < float("inf")), found, 1.0)


@triton.jit
def _ranks(values, n, FALLING: tl.constexpr, N: tl.constexpr):
    """The place of each of n values in order; values beyond stay behind."""
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    one, other = values[None, :], values[:, None]  # other: down the rows
    if FALLING:
        before = (other > one) | ((other == one) & (i < j))
    else:
        before = (other < one) | ((other == one) & (i < j))
    rank = tl.sum(tl.where(before & (i < n), 1, 0), 0)
    k = tl.arange(0, N)
    return tl.where(k < n, rank, k)


@triton.jit
def _completed(u, size, least, rows, n, wide, M: tl.constexpr, N: tl.constexpr):
    """Columns of length 1: those of no length, and those from n on, are made orthogonal to all others."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    there = (j < n) & (size > least)
    u = tl.where(there[None, :], m.f_div(u, tl.where(there, size, 1.0)[None, :] + tl.zeros_like(u)), 0.0)
    missing = tl.sum(tl.where((j < wide) & (there == 0), 1, 0), 0)
    for _ in range(missing):
        k = tl.min(tl.where((j < wide) & (there == 0), j, N), 0)
        # The unit vector that the columns describe least.
        seen = tl.where(i < rows, tl.sum(u * u, 1), 2.0)
        first = tl.min(tl.where(seen == tl.min(seen, 0), i, M), 0)
        v = tl.where(i == first, 1.0, tl.zeros_like(seen))
        for _again in range(2):
            along = tl.sum(u * v[:, None], 0)
            v -= tl.sum(u * along[None, :], 1)
        v = m.f_div(v, tl.zeros_like(v) + m.f_sqrt(tl.zeros_like(v) + tl.sum(v * v, 0)))
        u = tl.where((j == k)[None, :], v[:, None], u)
        there = there | (j == k)
    return u


@triton.jit
def singular(
    left, values, right, info, x, inner, outer_step, inner_step, row, col, l_step, l_row, l_col, r_row, r_col,
    rows, n, wide, tolerance, least, VECTORS: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    # Grid: matrices with at least as many rows as columns. Columns are rotated until all are orthogonal: their
    # lengths are the values, their directions the left vectors, the product of rotations the right ones.
    batch = tl.program_id(0).to(tl.int64)
    x += start(batch, inner, outer_step, inner_step)
    i, j = tl.arange(0, M)[:, None].to(tl.int64), tl.arange(0, N)[None, :].to(tl.int64)
    a = tl.load(x + i * row + j * col, mask=(i < rows) & (j < n), other=0.0)
    finite = tl.min(tl.where(tl.abs(a) < float("inf"), 1, 0)) == 1
    scale = _power_of_two(tl.max(tl.where(tl.abs(a) < float("inf"), tl.abs(a), 0.0)))
    a = m.f_div(a, tl.zeros_like(a) + scale)
    k = tl.arange(0, K)[:, None].to(tl.int64)
    if VECTORS:
        v = tl.where(k == j, tl.full((K, N), 1.0, a.dtype), 0.0)
    players = n + n % 2
    going, sweep = tl.where(finite, 1, 0), tl.full((), 0, tl.int32)
    while (going > 0) & (sweep < _SWEEPS):
        going = tl.full((), 0, tl.int32)
        for round in range(players - 1):
            partner = _partners(round, players, N)
            b = _of_partners(a, partner)
            own, both = tl.sum(a * a, 0), tl.sum(a * b, 0)
            other = tl.gather(own, partner, 0)
            size = tl.abs(both)
            # Columns as short as this are none in the end, and squares of shorter ones would leave the range.
            short = tolerance * tolerance
            small = tolerance * (tl.maximum(m.f_sqrt(own), short) * tl.maximum(m.f_sqrt(other), short))
            turn = (size > small) & (size > least) & (partner != tl.arange(0, N))
            tau, s = _angle(own, other, both, turn, partner, N)
            a = _rotated(a, b, tau, s)
            if VECTORS:
                v = _rotated(v, _of_partners(v, partner), tau, s)
            going = tl.maximum(going, tl.max(turn.to(tl.int32), 0))
        sweep += 1
    size = m.f_sqrt(tl.sum(a * a, 0))
    rank = _ranks(size, n, True, N)
    place = tl.arange(0, N)
    tl.store(values + batch * n + rank, size * scale, mask=place < n)
    tl.store(info + batch, tl.where(finite, going, 2))
    if VECTORS:
        u = _completed(a, size, tolerance * tolerance, rows, n, wide, M, N)
        to = left + batch * l_step + i * l_row + rank[None, :] * l_col
        tl.store(to, u, mask=(i < rows) & (j < wide))
        to = right + batch * n * n + k * r_row + rank[None, :] * r_col
        tl.store(to, v, mask=(k < n) & (j < n))


@triton.jit
def symmetric(
    values, vectors, info, x, inner, outer_step, inner_step, row, col, n, tolerance,
    UPPER: tl.constexpr, VECTORS: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    # Grid: matrices. Rows and columns are rotated until the diagonal alone is left.
    batch = tl.program_id(0).to(tl.int64)
    x += start(batch, inner, outer_step, inner_step)
    i, j = tl.arange(0, N)[:, None].to(tl.int64), tl.arange(0, N)[None, :].to(tl.int64)
    inside = (i < n) & (j < n)
    low, high = tl.maximum(i, j), tl.minimum(i, j)
    if UPPER:
        low, high = high, low
    a = tl.load(x + low * row + high * col, mask=inside, other=0.0)
    finite = tl.min(tl.where(tl.abs(a) < float("inf"), 1, 0)) == 1
    most = tl.max(tl.where(tl.abs(a) < float("inf"), tl.abs(a), 0.0))
    scale = _power_of_two(most)
    a = m.f_div(a, tl.zeros_like(a) + scale)
    if VECTORS:
        v = tl.where(i == j, tl.full((N, N), 1.0, a.dtype), 0.0)
    players = n + n % 2
    place = tl.arange(0, N)
    going, sweep = tl.where(finite, 1, 0), tl.full((), 0, tl.int32)
    while (going > 0) & (sweep < _SWEEPS):
        going = tl.full((), 0, tl.int32)
        for round in range(players - 1):
            partner = _partners(round, players, N)
            own = tl.sum(tl.where(i == j, a, 0.0), 0)
            other = tl.gather(own, partner, 0)
            # Both partners must see one number, and rounding makes those on either side of the diagonal two.
            below = tl.sum(tl.where((i == partner[None, :]) & (i > j), a, 0.0), 0)
            both = below + tl.gather(below, partner, 0)
            size = tl.abs(both)
            small = tolerance * m.f_sqrt(tl.abs(own)) * m.f_sqrt(tl.abs(other))
            turn = (size > small) & (size > tolerance * 0.0625) & (partner != place)
            tau, s = _angle(own, other, both, turn, partner, N)
            # Rows are rotated as columns of the transpose, whose own transpose is equal again.
            a = tl.trans(_rotated(a, _of_partners(a, partner), tau, s))
            cleared = turn[None, :] & (i == partner[None, :])
            a = tl.where(cleared, 0.0, _rotated(a, _of_partners(a, partner), tau, s))
            if VECTORS:
                v = _rotated(v, _of_partners(v, partner), tau, s)
            going = tl.maximum(going, tl.max(turn.to(tl.int32), 0))
        sweep += 1
    found = tl.sum(tl.where(i == j, a, 0.0), 0)
    rank = _ranks(found, n, False, N)
    tl.store(values + batch * n + rank, found * scale, mask=place < n)
    tl.store(info + batch, tl.where(finite, going, 2))
    if VECTORS:
        tl.store(vectors + (batch * n + i) * n + rank[None, :], v, mask=inside)
