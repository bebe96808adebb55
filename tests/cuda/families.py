"""Work that makes each family of kernels compile: a few layouts and dtypes, at real sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FAMILIES: dict[str, Callable[[Any], None]] = {}


def family(fn: Callable[[Any], None]) -> Callable[[Any], None]:
    FAMILIES[fn.__name__] = fn
    return fn


def _of(vt: Any, *shape: int, dtype: str = "bfloat16") -> Any:
    return vt.empty(*shape, dtype=getattr(vt, dtype), device="cuda")


@family
def pointwise(vt: Any) -> None:
    for dtype in ("bfloat16", "float32"):
        x = _of(vt, 256, 4096, dtype=dtype)
        vt.nn.functional.gelu(x)
        x.t() + x.t().contiguous()
        x[:, ::2] * 2
    x.to(vt.int64)
    vt.lgamma(x)
    vt.eq(x, x[0])
