"""The weights of a decoder by head and by neuron, in one form for every family. A view: the model stays as it is.

Vectors are rows, as in `x @ W`: `W_Q`, `W_K` and `W_V` are (heads, features, head features), `W_O` (heads, head
features, features). Every access reads what the model holds at that moment;
what it holds in two bytes or in blocks comes as float32. Knows modules by what they hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import votive

from ..nn import Module
from ..nn.fused_linear import PRODUCTS
from ..nn.points import has_points
from ..tensor import Tensor
from .factored_matrix import FactoredMatrix
from .parts import find_parts
from .targets import uncompiled

_KINDS = ("Q", "K", "V")


class ByLayer:
    """Tensors of all layers, of which each is made when it is asked for: `W_Q[3]`, `W_Q[3, 1]`, `W_Q.stack()`."""

    def __init__(self, layers: int, read: Callable[[int], Any]) -> None:
        self._layers, self._read = layers, read

    def __len__(self) -> int:
        return self._layers

    def __getitem__(self, index: int | tuple[Any, ...]) -> Any:
        layer, *rest = index if isinstance(index, tuple) else (index,)
        if not -self._layers <= layer < self._layers:
            raise IndexError(f"layer {layer} is outside 0..{self._layers - 1}.")
        found = self._read(layer % self._layers)
        return found[tuple(rest)] if rest else found

    def stack(self) -> Tensor:
        """All of them in one tensor, (layers, ...)."""
        return votive.stack([self[i] for i in range(self._layers)])


class Weights:
    """A decoder's weights by head and neuron; see `weights`."""

    def __init__(self, model: Module, folded: bool = False) -> None:
        self.model, self.folded = uncompiled(model), folded
        if not has_points(self.model):
            raise LookupError(
                f"{type(self.model).__name__} is none of the decoders of votive.models, whose heads are known."
            )
        self.parts = find_parts(self.model)
        self.layers = len(self.parts.layers)
        if folded and any(getattr(layer, "norm_place", "before") != "before" for layer in self.parts.layers):
            raise LookupError(
                f"{type(self.model).__name__}: its norms are of the stream itself, which goes on normed, and part "
                "of no matrix; leave out folded=True."
            )
        self.W_Q, self.W_K, self.W_V = (ByLayer(self.layers, self._projection(i, 0)) for i in range(3))
        self.b_Q, self.b_K, self.b_V = (ByLayer(self.layers, self._projection(i, 1)) for i in range(3))
        self.W_O = ByLayer(self.layers, self._out)
        self.W_in = ByLayer(self.layers, lambda i: self._mlp(i)[0])
        self.W_gate = ByLayer(self.layers, lambda i: self._gate(i))
        self.W_out = ByLayer(self.layers, lambda i: self._mlp(i)[2])
        self.b_O = ByLayer(self.layers, self._out_bias)
        self.b_in, self.b_gate, self.b_out = (ByLayer(self.layers, self._net_bias(part)) for part in range(3))

    # --- what stands where --------------------------------------------------------------------

    def _attention(self, layer: int) -> Any:
        found = self.parts.layers[layer].mixer
        if not hasattr(found, "apart"):
            raise LookupError(f"layer {layer} has no attention but a {type(found).__name__}, which has no heads.")
        return found

    def _net(self, layer: int) -> Any:
        return self.parts.layers[layer].net

    def _norms(self, layer: int) -> list[Any]:
        """Before attention, behind it, before the net, behind it; None where there is none."""
        owner = self.parts.layers[layer]
        before, behind, before_net, behind_net = owner.norms()
        return [before, behind, before if owner.parallel and before_net is None else before_net, behind_net]

    @property
    def heads(self) -> int:
        """How many query heads each layer has."""
        return self._attention(0).counts[0]

    def key_head(self, layer: int, head: int) -> int:
        """Which key and value head a query head reads."""
        heads, shared = self._attention(layer).counts[:2]
        if not -heads <= head < heads:
            raise IndexError(f"head {head} is outside 0..{heads - 1}.")
        return (head % heads) // (heads // shared)

    # --- matrices -----------------------------------------------------------------------------

    def _projection(self, which: int, part: int) -> Callable[[int], Any]:
        return lambda layer: self._projected(layer, which)[part]

    def _projected(self, layer: int, which: int) -> tuple[Tensor, Tensor]:
        """The matrices (heads, features, head features) of queries, keys or values; biases (heads, head features)."""
        attention = self._attention(layer)
        if getattr(attention, "latent", False):
            raise LookupError(
                f"layer {layer} makes queries, keys and values in two steps with a norm between, of which no one "
                f"matrix is the product; its weights are those of {type(attention).__name__}'s own modules."
            )
        if len(attention.names) == 3:
            W, b = _linear(getattr(attention, attention.names[which]))
        else:
            W, b = (attention.apart(part)[which] for part in _linear(getattr(attention, attention.names[0])))
        if self.folded:
            W, b = _fold(self._norms(layer)[0], W, b)
        count = attention.counts[which]
        W, b = W.unflatten(1, (count, -1)).transpose(0, 1), b.unflatten(0, (count, -1))
        if self.folded and which < 2 and attention.qk_norm:
            # The norm of a query or a key weighs its features; its scale is the text's.
            scale = _head_gains(attention.norms()[which], count if attention.qk_norm == "whole" else 0)
            W, b = W * scale.unsqueeze(-2) if scale.dim() == 2 else W * scale, b * scale
        return W, b

    def _out(self, layer: int) -> Tensor:
        attention = self._attention(layer)
        W, _ = _linear(attention.product)
        behind = self._norms(layer)[1]
        if self.folded:
            W = (W if behind is None else W * _gain(behind)) * self.parts.layers[layer].residual_scale
        return W.unflatten(0, (attention.counts[0], -1))

    def _out_bias(self, layer: int) -> Tensor:
        attention, behind = self._attention(layer), self._norms(layer)[1]
        b = _linear(attention.product)[1]
        if not self.folded:
            return b
        return (b if behind is None else b * _gain(behind)) * self.parts.layers[layer].residual_scale

    def _net_bias(self, part: int) -> Callable[[int], Any]:
        """What a layer's net adds to its neurons, to their gates, or to what it writes."""

        def read(layer: int) -> Tensor:
            before, behind = self._norms(layer)[2:]
            net = self._net(layer)
            if hasattr(net, "nets"):
                raise LookupError(f"the net of layer {layer} has {len(net.nets)} experts, each with its own biases.")
            found = _products(net)[part]
            if found is None:
                raise LookupError(f"the net of layer {layer} has no gate: {type(net).__name__}.")
            if not self.folded:
                return found[1]
            if part < 2:
                return _fold(before, *found)[1]
            return (found[1] if behind is None else found[1] * _gain(behind)) * self.parts.layers[layer].residual_scale

        return read

    def _gate(self, layer: int) -> Tensor:
        found = self._mlp(layer)[1]
        if found is None:
            raise LookupError(f"the net of layer {layer} has no gate: {type(self._net(layer)).__name__}.")
        return found

    def _mlp(self, layer: int, expert: int | None = None) -> tuple[Tensor, Tensor | None, Tensor]:
        """The matrices in (features, neurons), gate or None, and out (neurons, features)."""
        net = self._net(layer)
        experts = getattr(net, "nets", None)
        if (experts is None) != (expert is None):
            said = f"has {len(experts)} experts; use expert(layer, number)" if experts is not None else "has no experts"
            raise LookupError(f"the net of layer {layer} {said}.")
        if experts is not None:
            net = experts[expert]
        found = _products(net)
        before, behind = self._norms(layer)[2:]
        first, gate, last = (None if f is None else f[0] for f in found)
        assert first is not None
        assert last is not None
        if self.folded:
            first = _fold(before, *_pair(found[0]))[0]
            gate = None if gate is None else _fold(before, *_pair(found[1]))[0]
            last = (last if behind is None else last * _gain(behind)) * self.parts.layers[layer].residual_scale
        return first, gate, last

    def expert(self, layer: int, number: int) -> tuple[Tensor, Tensor, Tensor]:
        """In, gate and out matrix of one expert of a mixture."""
        first, gate, last = self._mlp(layer, number)
        assert gate is not None
        return first, gate, last

    def neuron(self, layer: int, number: int) -> tuple[Tensor, Tensor]:
        """What a neuron of a layer's net reads, and what it writes: two directions in the stream."""
        first, _, last = self._mlp(layer)
        return first[:, number], last[number]

    @property
    def W_E(self) -> Tensor:
        """The table of tokens (tokens, features), with a scale that the model puts on it."""
        table = self.parts.embedding.weight
        found = (m for m in self.model.modules() if getattr(m, "runs_through_points", False))
        holder = next(m for m in found if hasattr(m, "embedded"))
        with votive.no_grad():
            # As the model looks them up: some multiply, and some keep blocks.
            holder = getattr(holder, getattr(holder, "base_model_prefix", ""), holder)
            return _dense(holder.embedded(votive.arange(table.shape[0], device=table.device).unsqueeze(0), None)[0])

    @property
    def W_pos(self) -> Tensor:
        """The table of learned positions (positions, features)."""
        found = next((m.wpe for m in self.model.modules() if hasattr(m, "wpe")), None)
        if found is None:
            raise LookupError(f"{type(self.model).__name__} learns no vectors of positions: it rotates heads.")
        return _dense(found.weight)

    @property
    def W_U(self) -> Tensor:
        """The head (features, tokens)."""
        W, b = _linear(self.parts.head)
        return _fold(self.parts.norm, W, b)[0] if self.folded else W

    @property
    def b_U(self) -> Tensor:
        """What is added to the logits (tokens,): the head's bias, and with `folded` what the last norm adds."""
        W, b = _linear(self.parts.head)
        return _fold(self.parts.norm, W, b)[1] if self.folded else b

    # --- circuits -----------------------------------------------------------------------------

    def OV(self, layer: int, head: int) -> FactoredMatrix:
        """What a head writes of what it looks at: `W_V W_O` (features, features)."""
        return FactoredMatrix(self.W_V[layer, self.key_head(layer, head)], self.W_O[layer, head])

    def QK(self, layer: int, head: int, distance: int = 0) -> FactoredMatrix:
        """What a head looks for: `W_Q W_K^T` (features, features), not yet scaled.

        `distance` is how many positions the key stands before the query, for models that rotate heads.
        """
        q, k = self.W_Q[layer, head], self.W_K[layer, self.key_head(layer, head)]
        rotary = self._rotary(layer)
        if rotary is None:
            if distance:
                raise ValueError("QK: this model does not rotate heads, so that no distance is in its weights.")
        else:
            if distance < 0:
                raise ValueError(f"QK: distance counts back from the query, got {distance}.")
            q, k = _rotated(rotary, q, distance), _rotated(rotary, k, 0)
        return FactoredMatrix(q, k.transpose(-2, -1))

    def _rotary(self, layer: int) -> Any:
        body = next(m for m in self.model.modules() if hasattr(m, "stack"))
        which = body.design.rope(layer)
        return None if which is None else getattr(body, body.design.ropes[which].name)

    def full_OV(self, layer: int, head: int) -> FactoredMatrix:
        """What a head says for each token it looks at: `W_E W_V W_O W_U` (tokens, tokens)."""
        found = self.OV(layer, head)
        return FactoredMatrix(self.W_E @ found.A, found.B @ self.W_U)

    def direct(self) -> FactoredMatrix:
        """What each token says by itself, past all layers: `W_E W_U` (tokens, tokens)."""
        return FactoredMatrix(self.W_E, self.W_U)

    def composition(self, kind: str) -> Tensor:
        """How much each head reads of what each earlier one writes, (layers, heads, layers, heads).

        `kind` says for what: "Q" its query, "K" its key, "V" its value. Heads that cannot, because they are not
        in a later layer, have 0.
        """
        if kind not in _KINDS:
            raise ValueError(f"composition: kind must be one of {', '.join(_KINDS)}, got {kind!r}.")
        heads = [self._attention(i).counts[0] for i in range(self.layers)]
        writes = [_Thin.of([self.OV(i, h) for h in range(heads[i])]) for i in range(self.layers)]
        A = writes[0].A
        found = votive.zeros(self.layers, max(heads), self.layers, max(heads), dtype=A.dtype, device=A.device)
        for later in range(1, self.layers):
            reads = writes[later]
            if kind != "V":
                own = [self.QK(later, h) for h in range(heads[later])]
                reads = _Thin.of([m.T for m in own] if kind == "K" else own)
            for earlier in range(later):
                scores = writes[earlier].composition(reads)
                found[earlier, : heads[earlier], later, : heads[later]] = scores
        return found

    def __repr__(self) -> str:
        form = "with norms folded in" if self.folded else "as they are"
        return f"<weights of {type(self.model).__name__}, {self.layers} layers of {self.heads} heads, {form}>"


class _Thin(NamedTuple):
    """Factored matrices of one layer's heads, with what their norms are computed from."""

    A: Tensor  # (heads, features, width)
    B: Tensor  # (heads, width, features)
    left: Tensor  # (heads, width, width): the triangles of A and of B turned round
    right: Tensor
    norm: Tensor  # (heads,)

    @classmethod
    def of(cls, matrices: list[FactoredMatrix]) -> _Thin:
        A, B = votive.stack([m.A for m in matrices]), votive.stack([m.B for m in matrices])
        left, right = votive.linalg.qr(A)[1], votive.linalg.qr(B.transpose(-2, -1))[1]
        return cls(A, B, left, right, votive.linalg.matrix_norm(left @ right.transpose(-2, -1)))

    def composition(self, reads: _Thin) -> Tensor:
        """`composition` of each of these with each of those, (heads, heads)."""
        middle = self.B.unsqueeze(1) @ reads.A  # (H, H', r, r')
        core = self.left.unsqueeze(1) @ middle @ reads.right.transpose(-2, -1)
        return votive.linalg.matrix_norm(core) / (self.norm.unsqueeze(1) * reads.norm)


def _products(net: Any) -> list[Any]:
    """Matrix and bias of a net's neurons, of their gates or None, and of what it writes."""
    up, gate, down = (None if part is None else _linear(part) for part in net.halves())
    assert up is not None, "every net has neurons"
    if net.gate_first:
        (first, more), (bias, rest) = up[0].chunk(2, 1), up[1].chunk(2, 0)
        gate, up = (first, bias), (more, rest)
    return [up, gate, down]


def _pair(found: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor]:
    assert found is not None
    return found


def _dense(weight: Tensor) -> Tensor:
    """A weight as plain numbers of at least four bytes, whatever it is stored in."""
    found = weight.detach()
    return found if found.dtype in (votive.float32, votive.float64) else found.to(votive.float32)


def _linear(module: Any) -> tuple[Tensor, Tensor]:
    """The matrix (inputs, outputs) that a module multiplies with, and its bias."""
    with votive.no_grad():
        if module.__class__ in PRODUCTS:
            weight, bias = PRODUCTS[module.__class__](module)
            W = _dense(weight).t()
            return W, W.new_zeros(W.shape[1]) if bias is None else _dense(bias)
        # An adapter or the like: what it does to each unit vector.
        plain = next(p for p in module.parameters() if p.is_floating_point())
        inputs = getattr(module, "in_features", None)
        if inputs is None:
            raise LookupError(f"{type(module).__name__} is not a product whose matrix is known.")
        bias = _dense(module(plain.new_zeros(1, inputs))[0])
        return _dense(module(votive.eye(inputs, dtype=plain.dtype, device=plain.device))) - bias, bias


def _gain(norm: Any) -> Tensor:
    """By what a norm multiplies each feature."""
    return _dense(norm.weight) + getattr(norm, "weight_offset", 0.0)


def _head_gains(norm: Any, heads: int) -> Tensor:
    """By what the norm of queries or keys multiplies features: (features,), or (heads, features).

    `heads` are those whose features it norms at once, 0 for a norm of each head.
    """
    if hasattr(norm, "norms"):
        return votive.stack([_gain(one) for one in norm.norms])
    if norm.weight is None:
        return votive.ones(norm.normalized_shape)
    return _gain(norm).unflatten(0, (heads, -1)) if heads else _gain(norm)


def _fold(norm: Any, W: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """A product of normed vectors as one of vectors that are only scaled."""
    if norm is None:
        return W, b
    bias = getattr(norm, "bias", None)
    if bias is not None:
        b = b + _dense(bias) @ W
    if norm.weight is not None:
        W = _gain(norm).unsqueeze(-1) * W
    if isinstance(norm, votive.nn.LayerNorm):
        W = W - W.mean(0, keepdim=True)  # what takes the mean away before takes it away from the rows
    return W, b


def _rotated(rotary: Any, W: Tensor, position: int) -> Tensor:
    """The rows (features, head features) of a matrix as a model turns heads at a position."""
    with votive.no_grad():
        rows = W.unsqueeze(0).unsqueeze(0)  # (1, 1, C, D): each row is a head at that position
        at = votive.full((1, W.shape[0]), position, dtype=votive.int64, device=W.device)
        return rotary.rotate(rows, rotary.angles(W.shape[0], 0, at))[0, 0]


def weights(model: Module, *, folded: bool = False) -> Weights:
    """A decoder's weights by head and by neuron, in one form for every family.

    With `folded`, the weights of norms are part of the matrices behind them (and of those before them, where a model
    norms what it writes), so that a matrix acts on vectors that are only scaled. The model is not changed.

    >>> config = votive.models.LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=16, num_hidden_layers=2,
    ...     num_attention_heads=4, num_key_value_heads=2)
    >>> w = votive.glass.weights(votive.models.LlamaForCausalLM(config))
    >>> w.W_Q[1].shape, w.W_K[1].shape, w.W_O[1, 3].shape
    (votive.Size([4, 8, 2]), votive.Size([2, 8, 2]), votive.Size([2, 8]))
    >>> w.OV(1, 3), w.direct().shape, w.composition("K").shape
    (<factored matrix (8, 8) of rank 2>, votive.Size([9, 9]), votive.Size([2, 4, 2, 4]))
    """
    return Weights(model, folded)
