"""Compiled against eager: values, gradients, what was written, who shares memory, random numbers, errors."""

from __future__ import annotations

from typing import Any

import votive

TOLERANCE = {votive.float64: 1e-10, votive.float32: 3e-5, votive.float16: 4e-3, votive.bfloat16: 3e-2}


def tensors_in(value: Any) -> list[Any]:
    """The tensors of a nested value, in order."""
    if isinstance(value, votive.Tensor):
        return [value]
    if isinstance(value, dict):
        return [t for v in value.values() for t in tensors_in(v)]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_in(v)]
    return [t for v in vars(value).values() for t in tensors_in(v)] if hasattr(value, "__dict__") else []


def shape_of(value: Any) -> Any:
    """A nested value with tensors left out."""
    if isinstance(value, votive.Tensor):
        return "tensor", tuple(value.shape), value.dtype, value.requires_grad
    if isinstance(value, dict):
        return type(value), {k: shape_of(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value), [shape_of(v) for v in value]
    return value if value is None or isinstance(value, (int, float, str)) else type(value)


def alike(a: Any, b: Any, scale: float = 1.0) -> bool:
    """Whether two values are the same, numbers up to rounding."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or abs(a - b) <= 3e-5 * scale * (1 + abs(a)) or (a != a and b != b)
    if isinstance(a, (list, tuple)) and type(a) is type(b) and len(a) == len(b):
        return all(alike(x, y, scale) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict) and list(a) == list(b):
        return all(alike(a[k], b[k], scale) for k in a)
    return bool(a == b)


def close(a: Any, b: Any, scale: float = 1.0) -> None:
    """Two tensors are the same within the rounding of their dtype, measured against their largest number."""
    assert a.dtype == b.dtype, (a.dtype, b.dtype)
    assert tuple(a.shape) == tuple(b.shape), (a.shape, b.shape)
    if a.numel() == 0:
        return
    if not a.is_floating_point() and not a.is_complex():
        assert bool((a == b).all()), (a, b)
        return
    a, b = a.detach(), b.detach()
    tol = TOLERANCE.get(a.dtype, 3e-5) * scale
    wide, other = a.double(), b.double()
    assert bool((wide.isnan() == other.isnan()).all()), (a, b)
    finite = wide.isfinite() & other.isfinite()
    assert bool(((wide == other) | wide.isnan() | finite).all()), (a, b)
    wide, other = wide[finite], other[finite]
    if wide.numel():
        size = float(wide.abs().max()) + 1
        assert float((wide - other).abs().max()) <= tol * size, (a, b)


def sharing(tensors: list[Any]) -> list[int]:
    """Which of several tensors share memory, as numbers."""
    seen: dict[int, int] = {}
    return [seen.setdefault(id(t._storage.root), len(seen)) for t in tensors]


class Outcome:
    """What one call of a function did, gradients included."""

    def __init__(self, fn: Any, arguments: dict[str, Any], seed: int, backward: bool = True) -> None:
        votive.manual_seed(seed)
        self.error, self.result = "", None
        self.arguments = arguments
        try:
            self.result = fn(**arguments)
        except Exception as e:
            self.error = f"{type(e).__name__}: {e}"
        self.state = bytes(votive.get_rng_state().numpy().tobytes())
        self.outs = tensors_in(self.result)
        self.ins = tensors_in(arguments)
        self.grads: list[Any] = []
        losses = [o for o in self.outs if o.requires_grad and o.is_floating_point()]
        if backward and losses:
            total = sum((o.double() * (i + 1)).sin().sum() for i, o in enumerate(losses))
            try:
                total.backward()
            except RuntimeError as e:
                self.error += f"backward {type(e).__name__}: {e}"
            self.grads = [t.grad for t in self.ins if t.is_leaf]


def same(one: Outcome, other: Outcome, scale: float = 1.0) -> None:
    """The first is eager's, the second that of a compiled program."""
    # Eager refuses a backward that needs what was written over. A compiled program may have kept something else, and
    # knows the gradient; or it keeps what several results need together, one was written over, and it refuses, too.
    refused = any("modified by an inplace operation" in o.error for o in (one, other))
    if not refused:
        assert one.error == other.error, f"eager {one.error!r}, compiled {other.error!r}"
    assert alike(shape_of(one.result), shape_of(other.result), scale), (
        f"{shape_of(one.result)}\n{shape_of(other.result)}"
    )
    for a, b in zip(one.outs, other.outs, strict=True):
        close(a, b, scale)
    for a, b in zip(one.ins, other.ins, strict=True):
        close(a, b, scale)
    assert one.state == other.state, "random numbers were drawn in another number"
    assert sharing(one.ins + one.outs) == sharing(other.ins + other.outs), "memory is shared in another way"
    for a, b in () if refused else zip(one.grads, other.grads, strict=True):
        assert (a is None) == (b is None), (a, b)
        if a is not None:
            close(a, b, scale * 10)
    for k in one.arguments:
        a, b = one.arguments[k], other.arguments[k]
        if not isinstance(a, votive.Tensor):
            assert alike(shape_of(a), shape_of(b), scale), (k, a, b)
            assert getattr(a, "text", "") == getattr(b, "text", "")
