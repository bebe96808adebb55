"""Each fused operator and its composite twin agree: values, gradients, gradients of gradients.

A fused operator runs its gradient kernel when no graph is made of the gradient, and operators that
can be differentiated again when one is; both ways must give what the twin gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import votive as vt
from votive.dispatch import Call, Observer
from votive.ops.registry import COMPOSITES, OPS, F

Shapes = tuple[tuple[int, ...] | None, ...]


@dataclass(frozen=True)
class Pair:
    """A twin's name, the shapes of its differentiated tensors, and what else it is given."""

    name: str
    label: str
    shapes: Shapes
    args: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    middle: tuple[Any, ...] = ()  # goes between the first tensor and the others
    mask: Any = None  # goes behind the tensors

    def inputs(self, dtype: Any) -> list[Any]:
        rng = np.random.default_rng(len(self.label))
        made = [None if s is None else vt.tensor(rng.uniform(-2, 2, s)) for s in self.shapes]
        return [None if t is None else t.to(dtype).requires_grad_() for t in made]

    def run(self, fn: Callable[..., Any], inputs: list[Any]) -> list[Any]:
        behind = () if self.mask is None else (self.mask,)
        first, *rest = inputs
        found = fn(first, *self.middle, *rest, *behind, *self.args, **self.options)
        return list(found) if isinstance(found, tuple) else [found]

    @property
    def fused(self) -> Callable[..., Any]:
        return OPS[self.name]

    @property
    def composite(self) -> Callable[..., Any]:
        return COMPOSITES[f"{self.name}_composite"].fn


def attention(label: str, q: Any, k: Any, v: Any, mask: Any = None, **options: Any) -> Pair:
    return Pair("_attention", label, (q, k, v), (), options, mask=mask)


Q, K, V = (2, 4, 3, 4), (2, 4, 5, 4), (2, 4, 5, 3)
SHARED = ((2, 2, 5, 4), (2, 2, 5, 3))
SEEN = vt.tensor([[True, False, True, True, False], [False] * 5, [True] * 5])
ADDED = vt.where(SEEN, vt.tensor(0.5, dtype=vt.float64), -math.inf)
# Sequences of 2, 0 and 3 queries, and of 4, 1 and 1 keys.
ENDS = vt.tensor([0, 2, 2, 5]), vt.tensor([0, 4, 5, 6], dtype=vt.int32)
CLASSES = vt.tensor([[0, 2, -100], [1, 1, 3]])
SMOOTHED = (None, -100, 0.25, vt.float64)

PAIRS = [
    Pair("_softmax", "last", ((2, 3, 4),), (2,)),
    Pair("_softmax", "first of one", ((5,),), (0,)),
    Pair("_log_softmax", "middle", ((2, 3, 4),), (1,)),
    Pair("_cross_entropy", "smoothed", ((2, 4, 3),), (None, -100, 0.25, vt.float64), {}, (CLASSES,)),
    Pair("_cross_entropy_reduced", "mean", ((2, 4, 3),), (None, -100, 0.25, True), {}, (CLASSES,)),
    Pair("_cross_entropy_reduced", "sum", ((2, 4, 3),), (None, -100, 0.0, False), {}, (CLASSES,)),
    Pair("_batch_norm_by", "affine", ((2, 3, 4), *[(3,)] * 4), (4.0,)),
    Pair("_batch_norm_by", "plain", ((5, 4), (4,), (4,), None, None), (4.0,)),
    Pair("_layer_norm", "affine", ((2, 3, 4), (3, 4), (3, 4)), (2, 1e-5)),
    Pair("_layer_norm", "plain", ((5, 4), None, None), (1, 1e-2)),
    Pair("_layer_norm", "bias alone", ((5, 4), None, (4,)), (1, 1e-2)),
    Pair("_rms_norm", "weighted", ((2, 3, 4), (3, 4)), (2, 1e-5)),
    Pair("_rms_norm", "plain", ((5, 4), None), (1, 1e-2)),
    Pair("_group_norm", "affine", ((2, 6, 2, 3), (6,), (6,)), (3, 1e-5)),
    Pair("_group_norm", "plain", ((3, 4), None, None), (2, 1e-2)),
    Pair("_batch_norm", "affine", ((3, 4, 2), (4,), (4,)), (1e-5,)),
    Pair("_batch_norm", "plain", ((5, 3), None, None), (1e-2,)),
    Pair("_rope", "halves", ((2, 3, 6), (5, 2), (5, 2)), (1, False)),
    Pair("_rope", "interleaved", ((2, 2, 3, 6), (2, 1, 3, 3), (2, 1, 3, 3)), (0, True)),
    *(
        Pair("_grid_sample", f"{mode} {padding} {align}", shapes, (mode, padding, align))
        for shapes, modes in (
            (((2, 3, 4, 5), (2, 3, 2, 2)), ("bilinear", "bicubic")),
            (((1, 2, 3, 4, 5), (1, 2, 3, 2, 3)), ("bilinear",)),
        )
        for mode in modes
        for padding, align in (("zeros", False), ("border", True), ("reflection", False))
    ),
    attention("plain", Q, K, V),
    attention("scaled", Q, K, V, scale=0.125),
    attention("causal", Q, K, V, is_causal=True),
    attention("behind a cache", Q, K, V, is_causal=True, offset=2),
    attention("shared heads", Q, *SHARED, is_causal=True, offset=1),
    attention("a row that sees nothing", Q, K, V, SEEN),
    attention("an added mask", Q, *SHARED, ADDED),
    attention("both masks", Q, K, V, SEEN, is_causal=True),
    attention("dropout", Q, *SHARED, dropout_p=0.4, seed=7, counter=3),
    attention("no keys", (1, 2, 3, 4), (1, 2, 0, 4), (1, 2, 0, 4)),
    *(
        Pair("_linear_activated", f"{f} {label}", shapes, (f,))
        for f in ("relu", "gelu", "gelu_tanh", "silu")
        for label, shapes in {
            "batched": ((2, 3, 4), (5, 4), (5,)),
            "without bias": ((3, 4), (5, 4), None),
            "of a vector": ((4,), (5, 4), (5,)),
        }.items()
    ),
    *(
        Pair("_feed_forward", f"{f} {label}", shapes, (f,))
        for f in ("relu", "gelu", "gelu_tanh", "silu")
        for label, shapes in {
            "batched": ((2, 3, 4), (5, 4), (5,), (6, 5), (6,)),
            "without biases": ((3, 4), (5, 4), None, (2, 5), None),
            "of a vector": ((4,), (5, 4), (5,), (4, 5), None),
        }.items()
    ),
    Pair("_addmm_activated", "scaled", ((3, 1), (3, 4), (4, 2)), (2, 0.5, "gelu")),
    Pair("_addmm_activated", "of batches", ((2,), (5, 3, 4), (5, 4, 2)), (1, 1, "relu")),
    Pair("_attention", "a learned mask", (Q, K, V, (4, 1, 5))),
    *(
        Pair("_varlen_attention", f"{label} {left} {right}", shapes, (*ENDS, None, 3, 4, 0.5, left, right))
        for left, right in ((-1, -1), (-1, 0), (1, 1), (0, -1))
        for label, shapes in {
            "alike": ((5, 2, 4), (6, 2, 4), (6, 2, 4)),
            "shared heads, more positions": ((7, 4, 3), (8, 2, 3), (8, 2, 2)),
        }.items()
    ),
]
each = pytest.mark.parametrize("pair", PAIRS, ids=[f"{p.name} {p.label} {len(p.shapes[0] or ())}-d" for p in PAIRS])


def test_every_twin_is_among_the_pairs() -> None:
    twins = {n.removesuffix("_composite") for n in COMPOSITES if n.endswith("_composite")}
    # The twin of a gradient kernel is compared through the gradients; bytes of blocks, which have none, bit by bit in
    # tests/nn/test_quantized_cache.py.
    forward = {n for n in twins if not n.endswith("_backward") and OPS[n].differentiable}
    twins = {n for n in twins if OPS[n].differentiable}
    assert forward == {p.name for p in PAIRS}
    assert twins - forward <= {f"{n}_backward" for n in forward}


def close(got: Any, want: Any, tol: float, what: str) -> None:
    assert (got is None) == (want is None), what
    if got is not None:
        a, b = (t.detach().double().numpy() for t in (got, want))
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol, err_msg=what)


def visible(outs: list[Any], twins: list[Any]) -> list[Any]:
    """A norm's statistics are its own business: compare as many results as the twin has."""
    return outs[: len(twins)]


def weighed(outs: list[Any], seed: int) -> Any:
    """One number that every result enters; infinities of rows that see nothing stay out."""
    rng = np.random.default_rng(seed)
    total: Any = 0.0
    for t in outs:
        w = vt.tensor(rng.uniform(-1, 1, tuple(t.shape))).to(t.dtype)
        total = total + (vt.where(t.isfinite(), t, 0) * w).sum()
    return total


def gradients(pair: Pair, fn: Any, inputs: list[Any], graph: bool) -> list[Any]:
    live = [t for t in inputs if t is not None]
    count = len(pair.run(pair.composite, inputs))
    total = weighed(pair.run(fn, inputs)[:count], 1)
    return list(vt.autograd.grad(total, live, create_graph=graph))


@each
@pytest.mark.parametrize(
    "dtype, tol", [(vt.float64, 1e-12), (vt.float32, 1e-5), (vt.float16, 3e-3), (vt.bfloat16, 2e-2)], ids=str
)
def test_values_agree(pair: Pair, dtype: Any, tol: float) -> None:
    if pair.mask is not None and pair.mask.dtype is vt.float64:
        pair = Pair(pair.name, pair.label, pair.shapes, mask=pair.mask.to(dtype))
    inputs = pair.inputs(dtype)
    want = pair.run(pair.composite, inputs)
    got = visible(pair.run(pair.fused, inputs), want)
    for g, w in zip(got, want, strict=True):
        assert g.dtype is w.dtype
        assert g.shape == w.shape
        close(g, w, tol, "value")


class Names(Observer):
    """The operators that ran."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def before(self, call: Call) -> None:
        self.seen.add(call.op.name)


@each
def test_gradients_agree_whether_or_not_a_graph_is_made(pair: Pair) -> None:
    inputs = pair.inputs(vt.float64)
    want = gradients(pair, pair.composite, inputs, False)
    with Names() as plain:
        kernel = gradients(pair, pair.fused, inputs, False)
    with Names() as graphed:
        again = gradients(pair, pair.fused, inputs, True)
    for i, w in enumerate(want):
        close(kernel[i], w, 1e-11, f"gradient {i} by the kernel")
        close(again[i], w, 1e-11, f"gradient {i} with a graph")
    own = f"{pair.name}_backward"
    if f"{own}_composite" in COMPOSITES:
        assert own in plain.seen
        assert own not in graphed.seen


@each
def test_second_order_gradients_agree(pair: Pair) -> None:
    inputs = pair.inputs(vt.float64)
    live = [t for t in inputs if t is not None]
    found = []
    for fn in (pair.fused, pair.composite):
        first = gradients(pair, fn, inputs, True)
        total = weighed([g for g in first if g.requires_grad], 2)
        if not isinstance(total, vt.Tensor):
            found.append([None] * len(live))
            continue
        found.append(list(vt.autograd.grad(total, live, allow_unused=True)))
    for i, (a, b) in enumerate(zip(*found, strict=True)):
        zero = [t for t in (a, b) if t is None]
        if len(zero) == 1:  # one side does not depend on this input, the other says so by zeros
            (other,) = (t for t in (a, b) if t is not None)
            assert not other.any(), f"second gradient {i}"
            continue
        close(a, b, 1e-10, f"second gradient {i}")


@each
def test_half_gradients_are_those_of_wide_ones_rounded(pair: Pair) -> None:
    """Sums are carried in float32, also in the gradient kernels."""
    if pair.mask is not None and pair.mask.dtype is vt.float64:
        pytest.skip("a mask has the type of the query or float32")
    if pair.name == "_cross_entropy":
        pytest.skip("its result has the type that it is told to have")
    inputs = pair.inputs(vt.bfloat16)
    wide = [None if t is None else t.detach().double().requires_grad_() for t in inputs]
    got = gradients(pair, pair.fused, inputs, False)
    want = gradients(pair, pair.fused, wide, False)
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        assert g.dtype is vt.bfloat16
        size = max(float(w.abs().max()), 1.0) if w.numel() else 1.0
        close(g / size, w / size, 2e-2, f"gradient {i}")


def test_dropped_weights_differ_between_counters_and_repeat_for_one() -> None:
    q, k, v = (vt.randn(1, 2, 3, 4) for _ in range(3))
    runs = [F._attention(q, k, v, dropout_p=0.5, seed=1, counter=c)[0] for c in (0, 0, 64)]
    assert (runs[0] == runs[1]).all()
    assert not (runs[0] == runs[2]).all()


def test_log_sum_exp_rebuilds_the_weights() -> None:
    q, k = vt.randn(1, 2, 3, 4, dtype=vt.float64), vt.randn(1, 2, 5, 4, dtype=vt.float64)
    out, lse = F._attention(q, k, vt.eye(5, dtype=vt.float64).expand(1, 2, 5, 5))
    weights = (q @ k.transpose(-2, -1) / 2 - lse.unsqueeze(-1)).exp()
    close(weights, out, 1e-12, "weights")


def test_decoding_step_by_step_gives_the_rows_of_the_whole() -> None:
    q, k, v = (vt.randn(1, 2, 6, 4, dtype=vt.float64) for _ in range(3))
    whole, _ = F._attention(q, k, v, is_causal=True)
    for t in range(6):
        step, _ = F._attention(q[:, :, t : t + 1], k[:, :, : t + 1], v[:, :, : t + 1], is_causal=True, offset=t)
        close(step, whole[:, :, t : t + 1], 1e-12, f"step {t}")
    later, _ = F._attention(q[:, :, 4:], k, v, is_causal=True, offset=4)
    close(later, whole[:, :, 4:], 1e-12, "two steps at once")
