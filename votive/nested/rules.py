"""How operators compute on nested tensors: elementwise ones and those along inner dimensions on the values, the others
by component or by padding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.layout import wrap_dim
from ..ops.operator import Op
from ..ops.registry import F
from ..tensor import Tensor
from .convert import components, dim_of, gathered, packed, spread
from .tensor import NestedTensor, nested_like, values_of

if TYPE_CHECKING:
    from ..core.dtype import dtype as Dtype

Rule = Callable[..., Any]


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Let a function run the operators of these names when an argument is nested."""

    def enter(function: Rule) -> Rule:
        for name in names:
            NestedTensor._rules[name] = function
        return function

    return enter


def pattern_of(name: str, values: Any) -> NestedTensor:
    """The nested operand whose components all others share."""
    found = [v for v in values if isinstance(v, NestedTensor)]
    first = max(found, key=lambda v: v.ndim)
    for v in found:
        same = v._rows is first._rows or (
            v._layout.name == "strided" and first._layout.name == "strided" and v._rows.limits == first._rows.limits
        )
        if not same or v.ndim - v._ragged != first.ndim - first._ragged:
            raise RuntimeError(
                f"cannot call {name} with nested tensors of shapes {tuple(first._shown())} and {tuple(v._shown())}: "
                "they must have the same components; make one from the other's offsets()."
            )
    return first


def aligned(name: str, v: Any, x: NestedTensor) -> Any:
    """An operand as it is broadcast to the values of a nested tensor."""
    if isinstance(v, NestedTensor):
        return values_of(v)
    if not isinstance(v, Tensor) or v.ndim == 0:
        return v
    lead = x.ndim - v.ndim
    if lead < 0:
        raise RuntimeError(f"{name}: a dense operand of {v.ndim} dimensions with a nested one of {x.ndim}.")
    at = x._ragged - lead
    if at >= 0 and v.shape[at] != 1:
        raise RuntimeError(
            f"{name}: the dense operand of shape {tuple(v.shape)} does not broadcast to {tuple(x._shown())}: its size "
            "along the ragged dimension must be 1."
        )
    if lead:
        return v
    if v.shape[0] == 1:
        return v.squeeze(0)
    if v.shape[0] != x._rows.count or x._rows.lengths is not None:
        raise RuntimeError(f"{name}: a batch of {v.shape[0]} with {x._rows.count} components.")
    each = F.index_select(v, 0, x._rows.ids)  # (total, ..., 1 at the ragged dimension, ...)
    return F.movedim(each.squeeze(at), 0, at - 1)


def pointwise(name: str, op: Op, args: tuple[Any, ...]) -> Any:
    """An elementwise operator acts on the values."""
    x = pattern_of(op.name, args)
    made = nested_like(x, op.apply(tuple(aligned(op.name, v, x) for v in args)))
    if not name.endswith("_"):
        return made
    if not isinstance(args[0], NestedTensor) or made.dtype is not args[0].dtype:
        raise RuntimeError(f"{name}: the result cannot be written into the first argument.")
    return args[0]._become(made)


def _on_values(name: str) -> None:
    """A function of every element by itself."""

    def compute(input: NestedTensor, *args: Any, **kwargs: Any) -> Any:
        return nested_like(input, getattr(F, name)(values_of(input), *args, **kwargs))

    rule(name)(compute)


_on_values("clone")
_on_values("clamp")
_on_values("to")
_on_values("_to_dtype")
_on_values("float")
_on_values("double")
_on_values("half")
_on_values("bfloat16")
_on_values("int")
_on_values("long")
_on_values("bool")
_on_values("cpu")
_on_values("cuda")
_on_values("nan_to_num")
_on_values("nn.functional.relu")
_on_values("nn.functional.silu")
_on_values("nn.functional.elu")
_on_values("nn.functional.leaky_relu")
_on_values("nn.functional.dropout")
_on_values("dropout")
_on_values("zeros_like")
_on_values("ones_like")
_on_values("full_like")
_on_values("empty_like")
_on_values("rand_like")
_on_values("randn_like")


@rule("contiguous")
def _contiguous(input: NestedTensor, memory_format: Any = None) -> Any:
    x = packed(input)
    if x._ragged == 1:
        return x if x.is_contiguous() else nested_like(x, F.contiguous(values_of(x)))
    return nested_like(x, F.contiguous(values_of(x)))


@rule("pow")
def _pow(input: Tensor, exponent: Any) -> Any:
    x = pattern_of("pow", (input, exponent))
    return nested_like(x, F.pow(aligned("pow", input, x), aligned("pow", exponent, x)))


@rule("where")
def _where(condition: Any, input: Any, other: Any) -> Any:
    x = pattern_of("where", (condition, input, other))
    return nested_like(x, F.where(*(aligned("where", v, x) for v in (condition, input, other))))


@rule("masked_fill")
def _masked_fill(input: Tensor, mask: Tensor, value: Any) -> Any:
    x = pattern_of("masked_fill", (input, mask))
    return nested_like(x, F.masked_fill(aligned("masked_fill", input, x), aligned("masked_fill", mask, x), value))


@rule("unbind")
def _unbind(input: NestedTensor, dim: int = 0) -> Any:
    if wrap_dim("unbind", dim, input.ndim) != 0:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    return components(input)


@rule("equal")
def _equal(input: Tensor, other: Any) -> bool:
    if not isinstance(input, NestedTensor) or not isinstance(other, NestedTensor) or len(input) != len(other):
        return False
    pairs = zip(components(input), components(other), strict=True)
    return all(tuple(a.shape) == tuple(b.shape) and bool(F.equal(a, b)) for a, b in pairs)


# --- products and norms ------------------------------------------------------------------------------------


def _inner(name: str, x: NestedTensor, count: int = 1) -> None:
    if x._ragged > x.ndim - 1 - count:
        raise RuntimeError(f"{name}: not supported over the ragged dimension of {tuple(x._shown())}.")


@rule("linear")
def _linear(input: Tensor, weight: Tensor, bias: Any = None) -> Any:
    if not isinstance(input, NestedTensor):
        raise RuntimeError("linear: only the input may be nested.")
    _inner("linear", input)
    return nested_like(input, F.linear(values_of(input), weight, bias))


@rule("matmul", "bmm")
def _matmul(input: Tensor, other: Tensor) -> Any:
    if isinstance(input, NestedTensor) and not isinstance(other, NestedTensor) and other.ndim <= 2:
        _inner("matmul", input)
        return nested_like(input, F.matmul(values_of(input), other))
    if isinstance(input, NestedTensor):
        others = components(other) if isinstance(other, NestedTensor) else F.unbind(other)
        rows = zip(components(input), others, strict=True)
        parts = [F.matmul(a, b) for a, b in rows]
        same = isinstance(other, NestedTensor) and other._ragged == other.ndim - 1 and input._ragged == input.ndim - 2
        if not same:
            at = input._ragged - 1
            if input._ragged == input.ndim - 1:  # the ragged dimension was summed over
                return F.stack(parts)
            return nested_like(packed(input), F.cat(parts, at))
    raise NotImplementedError(
        "matmul: not implemented for these nested tensors, whose result would be ragged twice or whose first operand "
        "is dense; use .to_padded_tensor(0), or scaled_dot_product_attention."
    )


def _norm(name: str) -> None:
    def compute(input: NestedTensor, normalized_shape: Any, *args: Any, **kwargs: Any) -> Any:
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        _inner(name, input, len(shape))
        return nested_like(input, getattr(F, name)(values_of(input), shape, *args, **kwargs))

    rule(name)(compute)


_norm("nn.functional.layer_norm")
_norm("layer_norm")
_norm("nn.functional.rms_norm")


@rule("nn.functional.embedding")
def _embedding(input: Tensor, weight: Tensor, *args: Any, **kwargs: Any) -> Any:
    if not isinstance(input, NestedTensor):
        raise RuntimeError("embedding: only the indices may be nested.")
    return nested_like(input, getattr(F, "nn.functional.embedding")(values_of(input), weight, *args, **kwargs))


def _softmax(x: NestedTensor, dim: int, dtype: Dtype | None, log: bool) -> Any:
    d = dim_of("softmax", x, dim)
    function = F.log_softmax if log else F.softmax
    if d != x._ragged:
        return nested_like(x, function(values_of(x), d - 1, dtype=dtype))
    x = packed(x)
    wide = function(spread(x, float("-inf"), x._rows.longest), 1, dtype=dtype)
    return nested_like(x, F.movedim(gathered(wide, x._rows), 0, d - 1))


rule("softmax")(lambda input, dim, dtype=None: _softmax(input, dim, dtype, False))
rule("log_softmax")(lambda input, dim, dtype=None: _softmax(input, dim, dtype, True))
rule("nn.functional.softmax")(lambda input, dim, _stacklevel=3, dtype=None: _softmax(input, dim, dtype, False))
rule("nn.functional.log_softmax")(lambda input, dim, _stacklevel=3, dtype=None: _softmax(input, dim, dtype, True))


# --- attention ------------------------------------------------------------------------------------------------


@rule("nn.functional.scaled_dot_product_attention")
def _attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """Each component attends to its own: padded to one length, with a mask over what is padding."""
    if not all(isinstance(t, NestedTensor) and t._ragged == t.ndim - 2 for t in (query, key, value)):
        raise RuntimeError(
            "scaled_dot_product_attention: query, key and value must all be nested, of shape (batch, heads, ragged, "
            "features)."
        )
    if attn_mask is not None:
        raise NotImplementedError("scaled_dot_product_attention: attn_mask is not supported with nested tensors.")
    if key._rows is not value._rows and key._rows.limits != value._rows.limits:
        raise RuntimeError("scaled_dot_product_attention: key and value must have the same components.")
    q, k, v = packed(query), packed(key), packed(value)
    wide = [F.movedim(spread(t, 0.0, t._rows.longest), 1, -2) for t in (q, k, v)]
    lengths = (k._rows.offsets[1:] - k._rows.offsets[:-1]).to(dt.int64)
    places = F.arange(k._rows.longest, device=k.device)
    mask = (places < lengths.unsqueeze(1)).reshape(-1, *([1] * (q.ndim - 2)), k._rows.longest)
    if is_causal:
        mask = mask & (places <= F.arange(q._rows.longest, device=q.device).unsqueeze(1))
    attend = getattr(F, "nn.functional.scaled_dot_product_attention")
    out = attend(*wide, mask, dropout_p, False, scale=scale, enable_gqa=enable_gqa)  # (batch, heads, length, features)
    rows = gathered(F.movedim(out, -2, 1), q._rows)
    return nested_like(q, F.movedim(rows, 0, q._ragged - 1))
