"""What one token of a decoder takes, in few operators: each joins what would be several launches,
since at one row a launch costs more than its work. Knows shapes; these operators have no gradients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.errors import ShapeError, fail
from ..core.layout import Spec
from .registry import structured

if TYPE_CHECKING:
    from .types import Sequence


def _infer_norm_linear(x: Spec, norm: Spec, eps: float, weights: Sequence[Spec], gated: bool) -> Spec:
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
    differentiable=False,
)


def _infer_linear_add(x: Spec, w: Spec, residual: Spec) -> Spec:
    if w.ndim != 2 or (*residual.shape[:-1], w.shape[1]) != x.shape or (residual.shape[-1] != w.shape[0]):
        fail(ShapeError, "linear_add", f"{x.shape} by a weight of {w.shape} cannot be added to {residual.shape}.")
    return residual.like(residual.shape)


structured(
    "_linear_add(Tensor input, Tensor weight, Tensor residual)",
    placement="added linear",
    infer=_infer_linear_add,
    doc="`residual + x @ w.T`.",
    differentiable=False,
)


def _infer_attend(
    qkv: Spec,
    q_norm: Spec | None,
    k_norm: Spec | None,
    eps: float,
    cos: Spec,
    sin: Spec,
    keys: Spec,
    values: Spec,
    position: Spec,
    counts: Spec,
    heads: int,
    scale: float,
) -> Spec:
    op = "rotate_and_attend"
    batch, shared, _, width = keys.shape
    if qkv.shape != (batch, 1, (heads + 2 * shared) * width):
        fail(ShapeError, op, f"{heads} query and {shared} key heads of {width} do not make up {qkv.shape}.")
    if values.shape != keys.shape or counts.numel < batch * shared:
        fail(ShapeError, op, f"keys {keys.shape} need values alike and a count for each head.")
    return qkv.like((batch, 1, heads * width))


structured(
    "_rotate_and_attend(Tensor qkv, Tensor? q_norm, Tensor? k_norm, float eps, Tensor cos, "
    "Tensor sin, Tensor keys, Tensor values, Tensor position, Tensor counts, int heads, "
    "float scale)",
    infer=_infer_attend,
    mutates=("keys", "values", "counts"),
    doc="Norms and rotates the heads of one token, keeps its keys and values at `position`, and "
    "attends to all that are kept up to there; heads come back side by side. `cos` and `sin` have a "
    "row for each position, or one, which is that of `position`. `counts`: zeros, "
    "which the kernel uses and leaves as zeros. `position` and what is kept must not have been "
    "written by a fused operator just before.",
    differentiable=False,
)
