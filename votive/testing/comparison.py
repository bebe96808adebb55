"""Whether values are close, and what differs if not: numbers, tensors, and what is made of them."""

from __future__ import annotations

import cmath
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core import dtype as dt
from ..core.memory_format import strided
from ..core.promotion import promote_types
from ..ops.registry import F
from ..surface.interchange import from_numpy
from ..tensor import Tensor

Message = str | Callable[[str], str] | None
# How far numbers of a dtype may lie apart: relative, absolute. Exact dtypes may not at all.
TOLERANCES = {
    dt.float16: (1e-3, 1e-5),
    dt.bfloat16: (1.6e-2, 1e-5),
    dt.float32: (1.3e-6, 1e-5),
    dt.float64: (1e-7, 1e-7),
    dt.complex64: (1.3e-6, 1e-5),
    dt.complex128: (1e-7, 1e-7),
}


class _Options:
    """What `assert_close` was asked for."""

    def __init__(self, rtol: float | None, atol: float | None, equal_nan: bool, checks: dict[str, bool]) -> None:
        if (rtol is None) != (atol is None):
            missing = "atol" if atol is None else "rtol"
            raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
        self.rtol, self.atol, self.equal_nan, self.checks = rtol, atol, equal_nan, checks

    def tolerances(self, *dtypes: Any) -> tuple[float, float]:
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        found = [TOLERANCES.get(d, (0.0, 0.0)) for d in dtypes]
        return max(r for r, _ in found), max(a for _, a in found)


class _Different(Exception):
    """Values that differ: what is said of them, and where they stand."""

    def __init__(self, text: str, kind: type[Exception] = AssertionError, structure: bool = False) -> None:
        super().__init__(text)
        self.text, self.kind = text, kind
        self.structure = structure  # containers that do not fit: their message is not replaced
        self.path: list[Any] = []


def _allowed(limit: float, exact: bool) -> str:
    return "" if exact else f" (up to {limit} allowed)"


def _scalars(actual: Any, expected: Any, rtol: float, atol: float, equal_nan: bool) -> None:
    """Numbers of Python."""
    if actual == expected or (equal_nan and actual != actual and expected != expected):
        return
    apart = abs(actual - expected)
    if cmath.isfinite(actual) and cmath.isfinite(expected) and apart <= atol + rtol * abs(expected):
        return
    exact = rtol == 0 and atol == 0
    relative = float("inf") if expected == 0 else apart / abs(expected)
    raise _Different(
        f"Scalars are not {'equal' if exact else 'close'}!\n\nExpected {expected} but got {actual}.\n"
        f"Absolute difference: {apart}{_allowed(atol, exact)}\n"
        f"Relative difference: {relative}{_allowed(rtol, exact)}"
    )


def _numbers(actual: Any, expected: Any, options: _Options) -> None:
    plain = (int, float, complex)
    kinds = [next(k for k in plain if isinstance(x, (k, np.number))) for x in (actual, expected)]
    kinds = [
        k if not isinstance(x, np.number) else type(x.item()) for k, x in zip(kinds, (actual, expected), strict=True)
    ]
    if options.checks["dtype"] and kinds[0] is not kinds[1]:
        raise _Different(f"The (d)types do not match: {kinds[0]} != {kinds[1]}.")
    types = {int: dt.int64, float: dt.float64, complex: dt.complex128}
    rtol, atol = options.tolerances(*(types[k] for k in kinds))
    _scalars(kinds[0](actual), kinds[1](expected), rtol, atol, options.equal_nan)


def _same(name: str, actual: Any, expected: Any) -> None:
    if actual != expected:
        raise _Different(f"The values for attribute '{name}' do not match: {actual} != {expected}.")


def _dense(x: Any) -> Tensor:
    made: Tensor = x if x.layout is strided else x.to_dense()
    return made


def _tensors(actual: Tensor, expected: Tensor, options: _Options) -> None:
    _same("shape", actual.shape, expected.shape)
    if options.checks["layout"]:
        _same("layout", actual.layout, expected.layout)
    actual, expected = _dense(actual), _dense(expected)
    if options.checks["stride"]:
        _same("stride()", actual.stride(), expected.stride())
    if options.checks["device"]:
        _same("device", actual.device, expected.device)
    if options.checks["dtype"]:
        _same("dtype", actual.dtype, expected.dtype)
    rtol, atol = options.tolerances(actual.dtype, expected.dtype)
    if "meta" in (actual.device.type, expected.device.type):
        return  # there are no values
    actual, expected = actual.detach(), expected.detach()
    if actual.device != expected.device:
        actual, expected = actual.cpu(), expected.cpu()
    if actual.dtype is not expected.dtype:
        both = promote_types(actual.dtype, expected.dtype)
        actual, expected = actual.to(both), expected.to(both)
    if actual.dtype in dt.FLOAT8:
        actual, expected = actual.float(), expected.float()
    if not actual.numel():
        return
    if actual.ndim == 0:
        _scalars(actual.item(), expected.item(), rtol, atol, options.equal_nan)
        return
    close = F.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=options.equal_nan)
    if not bool(close.all()):
        raise _Different(_report(actual, expected, close, rtol, atol))


def _report(actual: Tensor, expected: Tensor, close: Tensor, rtol: float, atol: float) -> str:
    """What differs most, absolutely and relatively."""
    exact = rtol == 0 and atol == 0
    if not (actual.dtype.is_floating_point or actual.dtype.is_complex):
        actual, expected = actual.to(dt.int64), expected.to(dt.int64)
    apart = (actual - expected).abs()
    relative = apart / expected.abs()
    lines = [f"Tensor-likes are not {'equal' if exact else 'close'}!", ""]
    wrong, count = int((~close).sum()), close.numel()
    lines.append(f"Mismatched elements: {wrong} / {count} ({wrong / count:.1%})")
    for name, values, limit in (("absolute", apart, atol), ("relative", relative, rtol)):
        flat = F.where(close, 0, values).flatten()
        worst = int(flat.argmax())
        place = tuple(int(i) for i in np.unravel_index(worst, tuple(close.shape)))
        lines.append(f"Greatest {name} difference: {flat[worst].item()} at index {place}{_allowed(limit, exact)}")
    return "\n".join(lines)


def _array(x: Any) -> bool:
    return isinstance(x, np.ndarray)


def _compare(actual: Any, expected: Any, options: _Options, subclasses: bool) -> None:
    """Raise `_Different` at the first place where both differ."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        missing, more = sorted(expected.keys() - actual.keys()), sorted(actual.keys() - expected.keys())
        if missing or more:
            raise _Different(
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {missing}\nAdditional keys in the actual mapping: {more}",
                structure=True,
            )
        _each(list(actual), lambda k: (actual[k], expected[k]), options, subclasses)
    elif _sequence(actual) and _sequence(expected):
        if len(actual) != len(expected):
            raise _Different(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", structure=True)
        _each(range(len(actual)), lambda i: (actual[i], expected[i]), options, subclasses)
    elif actual is None or expected is None:
        if actual is not expected:
            raise _Different(f"None mismatch: {actual} is not {expected}")
    elif isinstance(actual, (bool, np.bool_)) and isinstance(expected, (bool, np.bool_)):
        if bool(actual) is not bool(expected):
            raise _Different(f"Booleans mismatch: {bool(actual)} is not {bool(expected)}")
    elif all(isinstance(x, (int, float, complex, np.number)) for x in (actual, expected)):
        _numbers(actual, expected, options)
    elif _array(actual) and _array(expected):
        _tensors(from_numpy(actual.copy()), from_numpy(expected.copy()), options)
    elif isinstance(actual, Tensor) and isinstance(expected, Tensor) and (subclasses or type(actual) is type(expected)):
        _tensors(actual, expected, options)
    else:
        raise _Different(
            f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.", TypeError
        )


def _sequence(x: Any) -> bool:
    return isinstance(x, Sequence) and not isinstance(x, str)


def _each(keys: Any, pair: Callable[[Any], tuple[Any, Any]], options: _Options, subclasses: bool) -> None:
    for key in keys:
        try:
            _compare(*pair(key), options, subclasses)
        except _Different as e:
            e.path.insert(0, key)
            raise


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Message = None,
) -> None:
    """Raise an AssertionError unless `|actual - expected| <= atol + rtol * |expected|` everywhere.

    Takes tensors, arrays, numbers, None, and sequences and mappings of these. Without `rtol` and `atol`, tolerances
    follow the dtype: float32 has 1.3e-6 and 1e-5, float64 1e-7 and 1e-7, integers none. `msg` replaces the message,
    or is a function of it.

    >>> votive.testing.assert_close(votive.tensor([1.0, 2.0]), votive.tensor([1.0, 2.5]))
    Traceback (most recent call last):
    ...
    AssertionError: Tensor-likes are not close!
    <BLANKLINE>
    Mismatched elements: 1 / 2 (50.0%)
    Greatest absolute difference: 0.5 at index (1,) (up to 1e-05 allowed)
    Greatest relative difference: 0.20000000298023224 at index (1,) (up to 1.3e-06 allowed)
    """
    __tracebackhide__ = True
    checks = {"device": check_device, "dtype": check_dtype, "layout": check_layout, "stride": check_stride}
    options = _Options(rtol, atol, equal_nan, checks)
    try:
        _compare(actual, expected, options, allow_subclasses)
        return
    except _Different as e:
        found = e
    text = found.text
    if found.path and found.kind is AssertionError:
        text += f"\n\nThe failure occurred for item {''.join(f'[{key!r}]' for key in found.path)}"
    if found.kind is AssertionError and msg is not None and not found.structure:
        text = msg(text) if callable(msg) else msg
    raise found.kind(text)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """The older form of `assert_close`, which takes NaN as equal to itself and does not look at dtype and device.

    >>> with __import__("warnings").catch_warnings(action="ignore"):
    ...     votive.testing.assert_allclose(votive.tensor([1.0]), [1.0])
    """
    warnings.warn("`assert_allclose()` is deprecated; use `assert_close()`.", FutureWarning, stacklevel=2)
    if not isinstance(actual, Tensor):
        actual = F.tensor(actual)
    if not isinstance(expected, Tensor):
        expected = F.tensor(expected, dtype=actual.dtype)
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=True,
        check_dtype=False,
        check_stride=False,
        msg=msg or None,
    )
