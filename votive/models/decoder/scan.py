"""Recurrences over positions, computed in blocks: a text costs a few large operators, not several for each position.

Decays are never divided by, so nothing overflows however fast a state forgets. Knows tensors only.
"""

from __future__ import annotations

import math

import votive
from votive.core import dtype as dt
from votive.nn import functional as F

from ...tensor import Tensor

SHORT = 4  # so few positions are taken one by one
BLOCK = 64  # positions whose influence on each other is one product
SEGMENT = 128  # positions whose states are held at once
NOTHING = -1e38  # the logarithm of no weight: sums of it are still numbers


def recurrence(decay: Tensor, added: Tensor, start: Tensor | None = None) -> Tensor:
    """All states of `h[t] = decay[t] * h[t - 1] + added[t]`, along dimension 1.

    `decay` is within 0 and 1 and has the shape of `added`; `start` is the state before the first position.

    >>> from votive.models.decoder.scan import recurrence
    >>> half = votive.full((1, 3, 1), 0.5)
    >>> recurrence(half, votive.ones(1, 3, 1)).flatten()
    tensor([1.0000, 1.5000, 1.7500])
    """
    T = added.shape[1]
    if T <= SHORT:
        return votive.stack(_states(decay.unbind(1), added.unbind(1), start), 1)
    # Blocks are run side by side, then what each hands on to the next.
    width = math.isqrt(T - 1) + 1
    count = -(-T // width)
    more = (0, 0) * (added.dim() - 2) + (0, count * width - T)
    decays, adds = (F.pad(x, more).unflatten(1, (count, width)) for x in (decay, added))  # (B, n, w, ...)
    left = decays.unbind(2)
    inner = _states(left, adds.unbind(2), None)
    falls = [left[0]]
    for one in left[1:]:
        falls.append(falls[-1] * one)
    first = votive.zeros_like(added[:, 0]) if start is None else start.to(added.dtype)
    ends = _states(falls[-1].unbind(1)[:-1], inner[-1].unbind(1)[:-1], first)
    carried = votive.stack([first, *ends], 1).unsqueeze(2)  # (B, n, 1, ...)
    whole = votive.stack(inner, 2) + votive.stack(falls, 2) * carried
    return whole.flatten(1, 2)[:, :T]


def _states(decay: tuple[Tensor, ...], added: tuple[Tensor, ...], start: Tensor | None) -> list[Tensor]:
    found: list[Tensor] = []
    for a, b in zip(decay, added, strict=True):
        start = b if start is None else a * start + b
        found.append(start)
    return found


def selective_scan(
    x: Tensor, step: Tensor, A: Tensor, B: Tensor, C: Tensor, start: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """What a diagonal state space gives, and its last state (batch, channels, states): Gu and Dao 2023, eq. 2.

    `x` and `step` are (batch, positions, channels), `A` (channels, states) below zero, `B` and `C` (batch, positions,
    states).

    >>> from votive.models.decoder.scan import selective_scan
    >>> one = votive.ones(1, 2, 1)
    >>> selective_scan(one, one, -votive.ones(1, 1), one, one)[0].flatten()
    tensor([1.0000, 1.3679])
    """
    parts = []
    for at in range(0, x.shape[1], SEGMENT):
        own = slice(at, at + SEGMENT)
        time = step[:, own].unsqueeze(-1)  # (B, t, D, 1)
        added = (step[:, own] * x[:, own]).unsqueeze(-1) * B[:, own].unsqueeze(2)  # (B, t, D, N)
        states = recurrence(votive.exp(time * A), added, start)
        parts.append((states @ C[:, own].unsqueeze(-1)).squeeze(-1))
        start = states[:, -1]
    assert start is not None, "there is a position"
    return parts[0] if len(parts) == 1 else votive.cat(parts, 1), start


def _falls(log_decay: Tensor) -> Tensor:
    """How much of what position j added is left at position i: (..., i, j), zero where j is later."""
    n = log_decay.shape[-1]
    ones = votive.ones(n, n, dtype=dt.bool_, device=log_decay.device)
    # Sums of the steps between the two: differences of sums from the start would lose digits.
    between = log_decay.unsqueeze(-1).expand(*log_decay.shape, n).masked_fill(~ones.tril(-1), 0.0).cumsum(-2)
    return between.masked_fill(~ones.tril(), -votive.inf).exp()


def _blocks(x: Tensor, size: int) -> Tensor:
    """Positions (batch, positions, heads, ...) as (batch, blocks, heads, positions, ...), with zeros at the end."""
    more = (0, 0) * (x.dim() - 2) + (0, -x.shape[1] % size)
    return F.pad(x, more).unflatten(1, (-1, size)).transpose(2, 3)


def decayed_attention(
    q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, start: Tensor | None = None, *, block: int = BLOCK
) -> tuple[Tensor, Tensor]:
    """Linear attention whose state fades: `S[t] = exp(log_decay[t]) S[t - 1] + k[t] v[t]'`, `y[t] = q[t] S[t]`.

    `q` and `k` are (batch, positions, groups, features), `v` (batch, positions, heads, values), `log_decay` (batch,
    positions, heads), at most 0; so many neighbouring heads share a group. Gives `y` and the last state (batch, heads,
    features, values). Dao and Gu 2024, arXiv:2405.21060, section 6.

    >>> from votive.models.decoder.scan import decayed_attention
    >>> one = votive.ones(1, 2, 1, 1)
    >>> decayed_attention(one, one, one, votive.zeros(1, 2, 1))[0].flatten()
    tensor([1., 2.])
    """
    T, groups, heads = q.shape[1], q.shape[2], v.shape[2]
    share = heads // groups
    if T == 1:
        state = (k[:, 0].repeat_interleave(share, 1).unsqueeze(-1)) * v[:, 0].unsqueeze(-2)  # (B, H, N, P)
        if start is not None:
            state = state + votive.exp(log_decay[:, 0])[..., None, None] * start
        return (q[:, 0].repeat_interleave(share, 1).unsqueeze(-2) @ state).transpose(1, 2), state
    size = min(block, T)
    q, k, v, log_decay = (_blocks(x, size) for x in (q, k, v, log_decay))  # (B, n, G or H, c, ...)
    total = log_decay.cumsum(-1)  # (B, n, H, c)
    scores = (q @ k.transpose(-2, -1)).repeat_interleave(share, 2)  # (B, n, H, c, c)
    y = (scores * _falls(log_decay)) @ v
    left = votive.exp(_rest(log_decay)).unsqueeze(-1)  # (B, n, H, c, 1)
    adds = k.repeat_interleave(share, 2).transpose(-2, -1) @ (left * v)  # (B, n, H, N, P)
    fall = votive.exp(total[..., -1])[..., None, None]
    first = votive.zeros_like(adds[:, 0]) if start is None else start.to(adds.dtype)
    states = _states(fall.unbind(1), adds.unbind(1), first)
    before = votive.stack([first, *states[:-1]], 1)
    y = y + votive.exp(total).unsqueeze(-1) * (q.repeat_interleave(share, 2) @ before)
    # Zeros at the end decay by exp(0): they leave the state as it is.
    return y.transpose(2, 3).flatten(1, 2)[:, :T], states[-1]


def _rest(log_decay: Tensor) -> Tensor:
    """The sum of the steps behind each position."""
    return F.pad(log_decay, (0, 1))[..., 1:].flip(-1).cumsum(-1).flip(-1)


def gated_delta_rule(
    q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, rate: Tensor, start: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Linear attention that corrects what its faded state says of a key, by `rate`: Yang et al. 2024, arXiv:2412.06464.

    `q` and `k` are (batch, positions, heads, features), `v` (batch, positions, heads, values), `log_decay`, at most 0,
    and `rate` (batch, positions, heads). Gives what is read and the last state (batch, heads, features, values).

    >>> from votive.models.decoder.scan import gated_delta_rule
    >>> one, flat = votive.ones(1, 2, 1, 1), votive.ones(1, 2, 1)
    >>> gated_delta_rule(one, one, 3 * one, 0 * flat, flat)[0].flatten()
    tensor([3., 3.])
    """
    T = q.shape[1]
    if T == 1:
        state = votive.zeros(v.shape[0], v.shape[2], k.shape[-1], v.shape[-1], dtype=v.dtype, device=v.device)
        if start is not None:
            state = votive.exp(log_decay[:, 0])[..., None, None] * start
        key = k[:, 0].unsqueeze(-2)  # (B, H, 1, N)
        change = (v[:, 0].unsqueeze(-2) - key @ state) * rate[:, 0][..., None, None]
        state = state + key.transpose(-2, -1) @ change
        return (q[:, 0].unsqueeze(-2) @ state).transpose(1, 2), state
    size = min(BLOCK, T)
    q, k, v, log_decay, rate = (_blocks(x, size) for x in (q, k, v, log_decay, rate))  # (B, n, H, c, ...)
    total = votive.exp(log_decay.cumsum(-1)).unsqueeze(-1)
    falls, rate = _falls(log_decay), rate.unsqueeze(-1)
    known = (rate * k) @ k.transpose(-2, -1) * falls
    eye = votive.eye(size, dtype=known.dtype, device=known.device)
    sides = votive.cat([rate * v, rate * k * total], -1)
    solved = votive.linalg.solve_triangular(known.tril(-1) + eye, sides, upper=False)
    new, seen = solved.split([v.shape[-1], k.shape[-1]], -1)
    scores = q @ k.transpose(-2, -1) * falls
    kept = (votive.exp(_rest(log_decay)).unsqueeze(-1) * k).transpose(-2, -1)
    state = votive.zeros_like(kept[:, 0] @ v[:, 0]) if start is None else start.to(v.dtype)
    parts = []
    for i in range(q.shape[1]):
        change = new[:, i] - seen[:, i] @ state
        parts.append((total[:, i] * q[:, i]) @ state + scores[:, i] @ change)
        state = total[:, i, :, -1:] * state + kept[:, i] @ change
    return votive.stack(parts, 1).transpose(2, 3).flatten(1, 2)[:, :T], state


State = tuple[Tensor, Tensor, Tensor]


def weighted_mean(
    k: Tensor, v: Tensor, log_decay: Tensor, bonus: Tensor, start: State | None = None
) -> tuple[Tensor, State]:
    """Means of values, weighed by `exp(k)` and how long ago they were; the newest by `exp(bonus + k)`.

    Peng et al. 2023, arXiv:2305.13048, eq. 16. `k` and `v` are (batch, positions, channels), `log_decay` and `bonus`
    (channels,). The state is the sum of the weighed values, that of the weights, and the logarithm by which both are
    scaled down, so that no exponent overflows.

    >>> from votive.models.decoder.scan import weighted_mean
    >>> x, none = votive.tensor([[[1.0], [3.0]]]), votive.zeros(1)
    >>> weighted_mean(0 * x, x, none, none)[0].flatten()
    tensor([1., 2.])
    """
    T, time = k.shape[1], log_decay
    if start is None:
        start = votive.zeros_like(k[:, 0]), votive.zeros_like(k[:, 0]), votive.full_like(k[:, 0], NOTHING)
    width = 1 if T <= SHORT else math.isqrt(T - 1) + 1
    count = -(-T // width)
    # What is behind the end weighs nothing.
    keys = F.pad(k, (0, 0, 0, count * width - T), value=NOTHING).unflatten(1, (count, width)).unbind(2)
    values = F.pad(v, (0, 0, 0, count * width - T)).unflatten(1, (count, width)).unbind(2)
    inner: list[State] = []  # (B, n, D) each: of the positions of the same block
    for key, value in zip(keys, values, strict=True):
        own = value, votive.ones_like(value), key
        inner.append(own if not inner else _merged(inner[-1], time, own))
    ends, befores = [start], []
    last = [part.unbind(1) for part in inner[-1]]
    for i in range(count):
        befores.append(ends[-1])
        ends.append(_merged(ends[-1], time * width, (last[0][i], last[1][i], last[2][i])))
    carried: State = tuple(votive.stack(list(part), 1) for part in zip(*befores, strict=True))  # type: ignore[assignment]
    means, states = [], []
    for j, (key, value) in enumerate(zip(keys, values, strict=True)):
        before = carried if j == 0 else _merged(carried, time * j, inner[j - 1])
        total, weight, _ = _merged(before, 0 * time, (value, votive.ones_like(value), key + bonus))
        means.append(total / weight)
        states.append(before)
    y = votive.stack(means, 2).flatten(1, 2)[:, :T]
    at, place = divmod(T - 1, width)
    final = tuple(
        part[:, at]
        for part in _merged(states[place], time, (values[place], votive.ones_like(keys[place]), keys[place]))
    )
    return y, final  # type: ignore[return-value]


def _merged(earlier: State, log_decay: Tensor, later: State) -> State:
    """Sums of two stretches of text, the earlier of which has faded."""
    scale = earlier[2] + log_decay
    top = votive.maximum(scale, later[2])
    a, b = votive.exp(scale - top), votive.exp(later[2] - top)
    return a * earlier[0] + b * later[0], a * earlier[1] + b * later[1], top
