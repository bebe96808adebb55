"""How masked tensors look as text, as in torch: `--` stands for what is masked out."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor


def _text(value: Any) -> str:
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def _nested(values: Any, mask: Any, depth: int, width: int) -> str:
    lead = "  " * depth
    if not isinstance(values, list):
        return _text(values) if mask else "--"
    if values and isinstance(values[0], list):
        rows = [_nested(v, m, depth + 1, width) for v, m in zip(values, mask, strict=True)]
        return f"{lead}[\n" + ",\n".join(rows) + f"\n{lead}]"
    words = [_text(v) if m else "--".rjust(width) for v, m in zip(values, mask, strict=True)]
    return f"{lead}[{', '.join(words)}]"


def text_of(data: Tensor, mask: Tensor) -> str:
    """The text of a masked tensor."""
    if data.ndim == 0:
        shown = _text(data.item()) if bool(mask.item()) else "--"
        return f"MaskedTensor({shown}, {bool(mask.item())})"
    words = [_text(v) for v in data.reshape(data.numel()).tolist()] if data.dtype.is_floating_point else []
    width = max((len(w) for w in words), default=8)
    return f"MaskedTensor(\n{_nested(data.tolist(), mask.tolist(), 1, width)}\n)"
