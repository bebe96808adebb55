"""Records for attention with its projections; torch is the reference."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op

BATCH = (S(3, 2, 4), S(5, 2, 4), S(5, 2, 4))
ALONE = (S(3, 4), S(3, 4), S(3, 4))
CAUSAL = S(dtype="bool", values=np.triu(np.ones((3, 3)), 1).tolist())
PADDED = S(dtype="bool", values=[[False, False, True, False, True], [False] * 5])


PACKED, BIAS = S(12, 4), S(12)


def call(
    inputs: tuple[Any, ...],
    heads: int = 2,
    packed: Any = PACKED,
    bias: Any = BIAS,
    extra: tuple[Any, ...] = (None, None),
    zero: bool = False,
    **options: Any,
) -> tuple[Any, ...]:
    """The long argument list; dropout is 0."""
    return (*inputs, 4, heads, packed, bias, *extra, zero, 0.0, S(4, 4), S(4), options)


EXTRA = (S(1, 1, 4), S(1, 1, 4))
SEPARATE = {
    "use_separate_proj_weight": True,
    "q_proj_weight": S(4, 4),
    "k_proj_weight": S(4, 3),
    "v_proj_weight": S(4, 2),
}

RECORDS = [
    op(
        "nn.functional.multi_head_attention_forward",
        samples=[
            call(BATCH),
            call(BATCH, 1, need_weights=False),
            call(BATCH, 4, average_attn_weights=False),
            call(BATCH, bias=None, key_padding_mask=PADDED),
            call(BATCH, need_weights=False, key_padding_mask=PADDED, zero=True),
            call(BATCH, attn_mask=S(3, 5), extra=EXTRA),
            call(BATCH, attn_mask=S(4, 3, 5), need_weights=False, extra=EXTRA, zero=True),
            call(ALONE, attn_mask=CAUSAL),
            call(ALONE, attn_mask=CAUSAL, is_causal=True, need_weights=False),
            call(ALONE, training=False, extra=EXTRA),
            call((S(3, 2, 4), S(5, 2, 3), S(5, 2, 2)), packed=None, **SEPARATE),
            call(BATCH, static_k=S(4, 6, 2), static_v=S(4, 6, 2)),
        ],
        domain=(-0.7, 0.7),  # half types round after each of four products
        errors=[
            (call(BATCH, 3), AssertionError),
            (call((S(3, 4), S(3, 2, 4), S(3, 2, 4))), AssertionError),
            (call((S(3, 2, 4), S(5, 2, 4), S(4, 2, 4))), AssertionError),
            (call((S(3, 2, 5), S(5, 2, 5), S(5, 2, 5))), AssertionError),
            (call(BATCH, extra=(S(1, 1, 4), None)), AssertionError),
            (call(BATCH, key_padding_mask=S(2, 4)), AssertionError),
            (call(BATCH, key_padding_mask=S(5)), AssertionError),
            (call(BATCH, attn_mask=S(3, 5, dtype="int64")), AssertionError),
            (call(BATCH, attn_mask=S(3, 4)), RuntimeError),
            (call(BATCH, is_causal=True), RuntimeError),
        ],
    )
]
