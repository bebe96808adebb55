"""What kernels of attention are told beside their tensors, on every device."""

from __future__ import annotations

from typing import Any, NamedTuple


class How(NamedTuple):
    """The last arguments of `_attention` and `_attention_backward`, in the order of their schemas. Rows that are chosen
    by slots have them for seed, counter and offset, which differ between calls.
    """

    seed: Any
    counter: Any
    offset: Any
    dropout_p: float
    is_causal: bool
    scale: float
    by_mask: bool = False  # whether the gradient of the mask is wanted too
