"""What one token of a decoder takes, in few operators: each joins what would be several launches,
since at one row a launch costs more than its work. Knows shapes; these operators have no gradients.
"""

from __future__ import annotations

from typing import Any

from ..core.errors import ShapeError, fail
from ..core.layout import Spec
from .registry import structured

HIDDEN: dict[str, Any] = {
    "method": False, "namespaces": (), "out": False, "differentiable": False,
}  # fmt: skip


def _infer_norm_linear(x: Spec, norm: Spec, eps: float, weights: Any, gated: bool) -> Spec:
    for w in weights:
        if w.ndim != 2 or w.shape[1] != x.shape[-1]:
            fail(ShapeError, "norm_linear", f"a weight of {w.shape} does not fit into {x.shape}.")
    if norm.shape != x.shape[-1:]:
        fail(ShapeError, "norm_linear", f"a norm of {norm.shape} does not fit into {x.shape}.")
    if gated and (len(weights) != 2 or weights[0].shape != weights[1].shape):
        fail(ShapeError, "norm_linear", "a gate takes two weights of one shape.")
    features = weights[0].shape[0] if gated else sum(w.shape[0] for w in weights)
    return x.like((*x.shape[:-1], features))


structured(
    "_norm_linear(Tensor input, Tensor norm, float eps, Tensor[] weights, bool gated)",
    infer=_infer_norm_linear,
    doc="`rms_norm(x) @ w.T` for each weight, side by side; gated: `silu(first) * second`.",
    **HIDDEN,
)

structured(
    "_linear_add(Tensor input, Tensor weight, Tensor residual)",
    infer=lambda x, w, residual: residual.like(residual.shape),
    doc="`residual + x @ w.T`.",
    **HIDDEN,
)


def _infer_turn(
    qkv: Spec, q_norm: Any, k_norm: Any, eps: float, cos: Spec, sin: Spec, keys: Spec, *rest: Any
) -> Spec:
    heads = rest[-1]
    batch, shared, _, width = keys.shape
    if qkv.shape != (batch, 1, (heads + 2 * shared) * width):
        fail(
            ShapeError, "turn_and_keep",
            f"{heads} query and {shared} key heads of {width} do not make up {qkv.shape}.",
        )  # fmt: skip
    return qkv.like((batch, heads, 1, width))


structured(
    "_turn_and_keep(Tensor qkv, Tensor? q_norm, Tensor? k_norm, float eps, Tensor cos, Tensor sin, "
    "Tensor keys, Tensor values, Tensor position, int heads)",
    infer=_infer_turn, mutates=("keys", "values"),
    doc="Norms and turns the heads of one token; keys and values go to their place in memory, and "
    "the queries (batch, heads, 1, features) come back.",
    **HIDDEN,
)  # fmt: skip

structured(
    "_attend_kept(Tensor query, Tensor keys, Tensor values, Tensor position, float scale)",
    infer=lambda q, k, v, position, scale: q.like((q.shape[0], 1, q.shape[1] * v.shape[3])),
    doc="Attention of one query per head over the kept positions up to `position`, heads side by "
    "side.",
    **HIDDEN,
)
