"""Padding with values taken from the tensor itself: reflected, repeated or wrapped around.

Knows shapes and gradients. Padding with a constant is `constant_pad_nd` in `rearrange`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import UnsupportedError, fail
from ..core.layout import Shape, Spec
from .fold import NN, like_input
from .registry import F, composite, structured
from .sizes import ints

if TYPE_CHECKING:
    from .types import Sequence, Tensor

MODES = ("reflect", "replicate", "circular")


def _padded_shape(shape: Shape, pad: Shape) -> Shape:
    out = list(shape)
    for i in range(len(pad) // 2):
        out[-1 - i] += pad[2 * i] + pad[2 * i + 1]
    return tuple(out)


def _infer(x: Spec, pad: Shape, mode: str) -> Spec:
    shape = _padded_shape(x.shape, pad)
    return x.like(shape) if mode == "circular" else like_input(x, shape)


structured(
    "_pad(Tensor input, int[] pad, str mode)",
    placement="padded",
    infer=_infer,
    grad={"input": lambda c, g: F._pad_transpose(g, c.shape("input"), c.pad, c.mode)},
    doc="Every padded position filled from the position that `mode` names.",
    skips_elements=True,
)

structured(
    "_pad_transpose(Tensor input, int[] size, int[] pad, str mode)",
    infer=lambda x, size, pad, mode: like_input(x, size),
    grad={"input": lambda c, g: F._pad(g, c.pad, c.mode)},
    doc="Every position collects the sum of those that `_pad` fills from it.",
)


def _check(shape: Shape, pad: Shape, mode: str) -> None:
    """What torch allows of the amounts in each mode."""
    for i in range(len(pad) // 2):
        before, after = pad[2 * i : 2 * i + 2]
        d = len(shape) - 1 - i
        size = shape[d]
        new = size + before + after
        if mode == "circular":
            if max(before, after) > size:
                fail(
                    RuntimeError,
                    "pad",
                    f"circular padding ({before}, {after}) wraps around dimension {d} of size {size} more than once.",
                )
            least = 0
        else:
            if mode == "reflect" and max(before, after) >= size:
                fail(
                    RuntimeError,
                    "pad",
                    f"reflect padding ({before}, {after}) must be smaller than the size {size} of dimension {d}.",
                )
            least = 1
        if new < least:
            fail(RuntimeError, "pad", f"padding ({before}, {after}) leaves {new} of {size} elements of dimension {d}.")


def _call(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> tuple[Any, Any]:
    """The operator that pads, and its arguments."""
    if not hasattr(pad, "__iter__"):
        raise TypeError(f"pad: pad must be a tuple of integers, got {type(pad).__name__}.")
    amounts = ints("pad", "pad", pad)
    if len(amounts) % 2 or len(amounts) > 2 * input.ndim:
        fail(RuntimeError, "pad", f"pad needs a pair for each of at most {input.ndim} dimensions, got {amounts}.")
    if mode == "constant":
        return F.constant_pad_nd, (input, amounts, 0 if value is None else value)
    if value is not None and value != 0:
        fail(RuntimeError, "pad", f"mode {mode!r} takes no value, got {value}.")
    padded = len(amounts) // 2
    if padded not in (1, 2, 3) or input.ndim not in (padded + 1, padded + 2):
        fail(
            UnsupportedError,
            "pad",
            f"mode {mode!r} pads the last 1 of 2-3, 2 of 3-4 or 3 of 4-5 dimensions, got {padded} of {input.ndim}.",
        )
    if mode not in MODES:
        fail(UnsupportedError, "pad", f"mode must be constant or one of {MODES}, got {mode!r}.")
    shape = tuple(input.shape)
    if mode != "circular":
        if input.dtype is dt.bool_:
            fail(UnsupportedError, "pad", f"mode {mode!r} is not implemented for bool.")
        if 0 in shape[input.ndim - padded - 1 :]:
            fail(RuntimeError, "pad", f"only the batch may be empty, got shape {shape}.")
    _check(shape, amounts, mode)
    return F._pad, (input, amounts, mode)


@composite(namespaces=NN, method=False, shortcut=_call)
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Add elements around a tensor: a constant, or what "reflect", "replicate", "circular" repeat.

    `pad` holds (before, after) for the last dimension, then for the one before it, and so on;
    negative numbers cut.

    >>> votive.nn.functional.pad(votive.tensor([[1, 2, 3]]), (2, 1), "reflect")
    tensor([[3, 2, 1, 2, 3, 2]])
    """
    op, args = _call(input, pad, mode, value)
    result: Tensor = op(*args)
    return result
