"""How tensors look as text, equal to torch character by character. Knows ndarrays only."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import spelled

__all__ = ["PrintOptions", "format_tensor", "get_printoptions", "printoptions", "set_printoptions", "tensor_suffixes"]


@dataclass(frozen=True)
class PrintOptions:
    """The settings of `set_printoptions`, with torch's defaults."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}

_current = PrintOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print; what is not given stays, but `sci_mode` returns to automatic.

    >>> votive.set_printoptions(precision=2)
    >>> votive.tensor([1.12345])
    tensor([1.12])
    >>> votive.set_printoptions(profile="default")
    """
    global _current
    if profile is not None and profile not in _PROFILES:
        known = ", ".join(map(repr, _PROFILES))
        raise ValueError(f"set_printoptions: unknown profile {profile!r}; use one of {known}.")
    base = _current if profile is None else _PROFILES[profile]
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    _current = replace(base, sci_mode=sci_mode, **changes)


def get_printoptions() -> dict[str, Any]:
    """The current options, as keywords that `set_printoptions` accepts.

    >>> votive.get_printoptions()["precision"]
    4
    """
    return asdict(_current)


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Change the print options inside a `with` block; takes what `set_printoptions` takes.

    >>> with votive.printoptions(precision=1):
    ...     print(votive.tensor([0.25, 3.0]))
    tensor([0.2, 3.0])
    """
    global _current
    before = _current
    set_printoptions(**options)
    try:
        yield
    finally:
        _current = before


def format_tensor(
    array: NDArray[Any] | None,
    *,
    prefix: str = "tensor(",
    suffixes: Sequence[str] = (),
    options: PrintOptions | None = None,
) -> str:
    """The full text of a tensor: prefix, values (dots where there are none), suffixes, closing bracket.

    >>> format_tensor(np.array([[1.0, 2.5]]), suffixes=["dtype=votive.float64"])
    'tensor([[1.0000, 2.5000]], dtype=votive.float64)'
    """
    options = options or _current
    indent = len(prefix)
    body = prefix + ("..." if array is None else values_text(array, indent, options))
    return append_suffixes(body, suffixes, indent, options.linewidth) + ")"


def tensor_suffixes(
    *,
    dtype: str,
    shape: Sequence[int],
    default_dtype: str = "float32",
    device: str = "cpu",
    requires_grad: bool = False,
    grad_fn: str | None = None,
    options: PrintOptions | None = None,
) -> list[str]:
    """The `name=value` parts after the values, in torch's order; names carry no `votive.`.

    >>> tensor_suffixes(dtype="float64", shape=(2,), grad_fn="AddBackward0")
    ['dtype=votive.float64', 'grad_fn=<AddBackward0>']
    """
    options = options or _current
    empty = 0 in shape
    suffixes = []
    if device != "cpu":
        suffixes.append(f"device='{device}'")
    # One empty dimension is what `[]` reads as; with no edge items nothing shows the shape.
    no_values = device == "meta"
    if no_values or (empty and len(shape) != 1) or (not empty and options.edgeitems == 0):
        suffixes.append(f"size={tuple(shape)}")
    if dtype not in _unmarked_dtypes(default_dtype, empty or no_values):
        suffixes.append(f"dtype={spelled.package}.{dtype}")
    if grad_fn is not None:
        suffixes.append(f"grad_fn=<{grad_fn}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    return suffixes


def _unmarked_dtypes(default_dtype: str, empty: bool) -> set[str]:
    """The dtypes that a reader infers from the values alone; an empty tensor has none to show."""
    if empty:
        return {default_dtype}
    default_complex = "complex128" if default_dtype == "float64" else "complex64"
    return {default_dtype, default_complex, "int64", "bool"}


def current_options() -> PrintOptions:
    """The options that hold now."""
    return _current


def append_suffixes(
    body: str, suffixes: Sequence[str], indent: int, linewidth: int | None = None, *, break_first: bool = False
) -> str:
    """The text with its suffixes, on new lines where one is full; `break_first` begins with a new line."""
    linewidth = _current.linewidth if linewidth is None else linewidth
    # torch reserves two columns beyond the last line of the values; keeping its count (and
    # its shorter name, below) makes lines break where torch breaks them.
    column = len(body) - (body.rfind("\n") + 1) + 2
    for suffix in suffixes:
        width = len(suffix)
        if suffix.startswith(("dtype=votive.", "layout=votive.")):
            width -= len("votive") - len("torch")
        if break_first or column + width + 2 > linewidth:
            break_first = False
            body += ",\n" + " " * indent + suffix
            column = indent + width
        else:
            body += ", " + suffix
            column += width + 2
    return body


def values_text(array: NDArray[Any], indent: int, options: PrintOptions) -> str:
    """The bracketed values."""
    if array.size == 0:
        return "[]"
    cut = [False] * array.ndim
    if array.size > options.threshold:
        cut = [size > 2 * options.edgeitems for size in array.shape]
        array = _corners(array, cut, options.edgeitems)
    texts, width = _element_texts(array.reshape(-1), options)
    if array.ndim == 0:
        return texts[0]
    return _nested(iter(texts), array.shape, cut, indent, width, options)


def _corners(array: NDArray[Any], cut: Sequence[bool], edge: int) -> NDArray[Any]:
    """The elements that survive summarisation: both ends of every dimension that is cut."""
    ends = np.concatenate([np.arange(edge), np.arange(-edge, 0)])
    kept = [ends if shorten else np.arange(size) for shorten, size in zip(cut, array.shape, strict=True)]
    return array[np.ix_(*kept)] if kept else array


def _nested(
    texts: Iterator[str], shape: Sequence[int], cut: Sequence[bool], indent: int, width: int, options: PrintOptions
) -> str:
    """Bracketed text of an array whose element texts come in row-major order."""
    margin = "\n" + " " * (indent + 1)
    edge = shape[0] // 2
    if len(shape) == 1:
        row = [next(texts) for _ in range(shape[0])]
        if cut[0]:
            # torch pads the dots of a row, so that ",  ..." shows two spaces.
            row.insert(edge, " ..." if row else "...")
        per_line = max(1, (options.linewidth - indent) // (width + len(", ")))
        lines = [", ".join(row[i : i + per_line]) for i in range(0, len(row), per_line)]
        return "[" + ("," + margin).join(lines) + "]"
    parts = [_nested(texts, shape[1:], cut[1:], indent + 1, width, options) for _ in range(shape[0])]
    if cut[0]:
        parts.insert(edge, "...")
    blank_lines = "\n" * (len(shape) - 2)
    return "[" + ("," + blank_lines + margin).join(parts) + "]"


def _element_texts(values: NDArray[Any], options: PrintOptions) -> tuple[list[str], int]:
    """Text of each element of a flat array, and the width that line breaking counts on."""
    if values.dtype.kind == "c":
        reals, real_width = _real_texts(values.real, options)
        imags, imag_width = _real_texts(values.imag, options)
        pairs = zip(reals, imags, strict=True)
        return [_complex_text(re, im.lstrip()) for re, im in pairs], real_width + imag_width + 1
    return _real_texts(values, options)


def _complex_text(real: str, imag: str) -> str:
    sign = "" if imag.startswith("-") else "+"
    return f"{real}{sign}{imag}j"


def _real_texts(values: NDArray[Any], options: PrintOptions) -> tuple[list[str], int]:
    if values.dtype.kind in "biu":
        texts = [str(value) for value in values.tolist()]
        width = max(map(len, texts), default=1)
    else:
        # float64 holds every narrower float exactly, and Python formats it with all digits.
        floats = values.astype(np.float64)
        # Zeros and non-finite values choose neither notation nor width, as in torch.
        deciding = np.isfinite(floats) & (floats != 0)
        spec, whole = _float_notation(floats[deciding], options)
        texts = [format(value, spec) for value in floats.tolist()]
        if whole:
            texts = [text if text.endswith(("f", "n")) else text + "." for text in texts]
        widths = (len(text) for text, counts in zip(texts, deciding, strict=True) if counts)
        width = max(widths, default=1)
    return [text.rjust(width) for text in texts], width


def _float_notation(floats: NDArray[np.float64], options: PrintOptions) -> tuple[str, bool]:
    """Format spec for these nonzero finite values, and whether they print as `1.`, `20.`."""
    if floats.size == 0:
        return ".0f", True
    scientific = options.sci_mode
    if scientific is None:
        magnitudes = np.abs(floats)
        low, high = float(magnitudes.min()), float(magnitudes.max())
        # The limits at which torch 2.13 changes notation.
        scientific = high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4
    if scientific:
        return f".{options.precision}e", False
    if np.array_equal(floats, np.ceil(floats)):
        return ".0f", True
    return f".{options.precision}f", False
