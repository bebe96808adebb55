"""Functions of single scores and indices, called once for all of them. Knows no attention.

`score_mod(score, b, h, q_idx, kv_idx)` is written for one number. It is called with whole tensors that broadcast
against each other, which gives the same for anything made of elementwise operators and of look-ups by index. Whether
that holds is looked at: some places are computed one by one, too, and if they differ, or if the function cannot take
whole tensors, it is mapped over each index by `votive.func.vmap`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ...core import dtype as dt
from ...core.mode import mode
from ...ops.registry import F
from ...tensor import Tensor

Mod = Callable[..., Any]


def takes_score(fn: Mod) -> bool:
    """Whether a function is a score_mod, of five arguments, and not a mask_mod, of four."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return True
    count = sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    if any(p.kind is p.VAR_POSITIONAL for p in parameters) and count < 4:
        return False
    if count not in (4, 5):
        raise AssertionError(
            f"a mod takes (b, h, q_idx, kv_idx), after the score if it has one; got {count} arguments."
        )
    return count == 5


def _indices(shape: tuple[int, ...], device: Any) -> list[Tensor]:
    """0..n-1 along each dimension."""
    return [F.arange(n, dtype=dt.int64, device=device) for n in shape]


def _places(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Some places to look at: the last one, and some in the middle that differ in each dimension."""
    last = tuple(n - 1 for n in shape)
    middle = tuple(n // 2 for n in shape)
    return list(dict.fromkeys([last, middle, (*middle[:2], 0, last[3]), (0, 0, last[2], 0)]))


def _equal(a: Tensor, b: Tensor) -> bool:
    x, y = a.double().item(), b.double().item()
    return x == y or (x != x and y != y) or abs(x - y) <= 1e-4 * max(abs(x), abs(y), 1e-3)


def _agrees(fn: Mod, score: Tensor | None, out: Tensor, shape: tuple[int, ...], device: Any) -> bool:
    """Whether the function gives at single places what it gave for all at once."""
    if out.ndim > 4 or any(n not in (1, m) for n, m in zip(out.shape[::-1], shape[::-1], strict=False)):
        return False
    whole = out.detach().expand(shape)
    grad, mode.grad = mode.grad, False
    try:
        for place in _places(shape):
            at = [F.tensor(i, dtype=dt.int64, device=device) for i in place]
            alone = fn(*([] if score is None else [score.detach()[place]]), *at)
            if not isinstance(alone, Tensor):
                alone = F.tensor(alone, device=device)
            if alone.ndim or not _equal(alone, whole[place]):
                return False
    except Exception:
        return False  # whatever a single call cannot do, mapping says better
    finally:
        mode.grad = grad
    return True


def _mapped(fn: Mod, score: Tensor | None, shape: tuple[int, ...], device: Any) -> Any:
    """The function mapped over one index after the other, the last one innermost."""
    from ...func import vmap

    whole = () if score is None else (0,)
    for place in (3, 2, 1, 0):
        fn = vmap(fn, in_dims=(*whole, *(0 if i == place else None for i in range(4))))
    return fn(*([] if score is None else [score]), *_indices(shape, device))


def apply(fn: Mod, score: Tensor | None, shape: tuple[int, ...], device: Any) -> Tensor:
    """`fn` at every place of `shape`, which is (batch, heads, queries, keys); broadcasts to it."""
    at = [x.reshape([-1 if i == d else 1 for i in range(4)]) for d, x in enumerate(_indices(shape, device))]
    given = [] if score is None else [score]
    if 0 in shape:
        return score if score is not None else F.ones(shape, dtype=dt.bool_, device=device)
    try:
        out = fn(*given, *at)
        if not isinstance(out, Tensor):
            out = F.tensor(out, device=device)
    except Exception:
        out = None
    if out is None or not _agrees(fn, score, out, shape, device):
        out = _mapped(fn, score, shape, device)
    return out
