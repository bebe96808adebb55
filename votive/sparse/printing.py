"""How sparse tensors look as text, as in torch: indices, values, size, layout."""

from __future__ import annotations

from typing import Any

from ..backends.base import BACKENDS
from ..core import dtype as dt
from ..core import spelled
from ..surface.printing import append_suffixes, current_options, values_text
from ..tensor import Tensor
from .tensor import BY_ROWS, CooTensor

_PREFIX = "tensor("


def _part(name: str, part: Tensor) -> str:
    head = f"{name}=tensor("
    array = BACKENDS[part.device.type].to_numpy(part._data)
    body = values_text(array, len(_PREFIX) + len(head), current_options())
    size = f", size={tuple(part.shape)}" if part.numel() == 0 else ""
    return f"{head}{body}{size})"


def text_of(x: Any) -> str:
    """The text of a sparse tensor."""
    if isinstance(x, CooTensor):
        parts = [("indices", x._at), ("values", x._held)]
    else:
        names = ("crow_indices", "col_indices") if x._layout in BY_ROWS else ("ccol_indices", "row_indices")
        parts = [(names[0], x._starts), (names[1], x._plain), ("values", x._held)]
    indent = " " * len(_PREFIX)
    body = _PREFIX + (",\n" + indent).join(_part(name, part) for name, part in parts)
    suffixes = [] if x.device.type == "cpu" else [f"device='{x.device}'"]
    suffixes += [f"size={tuple(x.shape)}", f"nnz={x._nnz()}"]
    default = dt.get_default_dtype()
    plain = (default, dt.complex128 if default is dt.float64 else dt.complex64, dt.int64, dt.bool_)
    if x.dtype not in plain:
        suffixes.append(f"dtype={spelled.package}.{x.dtype.name}")
    suffixes.append(f"layout={spelled.package}.{x._layout.name}")
    node = x.grad_fn
    if node is not None:
        suffixes.append(f"grad_fn=<{node.name()}>")
    elif x._rg:
        suffixes.append("requires_grad=True")
    return append_suffixes(body, suffixes, len(_PREFIX), break_first=isinstance(x, CooTensor)) + ")"
