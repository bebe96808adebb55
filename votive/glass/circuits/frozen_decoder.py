"""A decoder as it acted on one text, with attention patterns and norm scales held fast, which makes it linear.

Between what nets write, and from there to what nets read and to the logits, everything is then a product with known
matrices: Ameisen et al. 2025, "Circuit tracing". What each layer's attention gives by these matrices is compared with
what it gave in the run, so that a model that computes otherwise is refused. Knows no family.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import votive

from ...nn import LayerNorm, Module, RMSNorm
from ...tensor import Tensor
from ..check_sites import _tolerance
from ..frozen_norm import FrozenNorm
from ..head_weights import Weights, _gain, _linear
from ..sites import AllSites
from ..sweep_runs import inputs_of
from ..targets import uncompiled

_OF_LAYERS = (
    "layers.*.{resid_pre,ln1.scale,attn.pattern,ln1_post.scale,attn_out,mlp_in,ln2.scale,ln2_post.scale,mlp_out}",
    "layers.*.resid_post",
    "ln_final.scale",
)
NEURONS = ("layers.*.mlp.{pre,pre_linear,post}",)


@dataclass
class FrozenLayer:
    """One layer of one run: vectors are (..., positions, features), gradients (rows, positions, features).

    Gradients may end before the last position, behind which they are zero. `start`, `net` and `end` are the stream
    before the layer, what the net adds to it, and the stream behind the layer.
    """

    place: str  # of the norms: "before" what parts read, of the "sum", or of the "stream"
    parallel: bool
    scale: float  # of what is added to the stream
    norms: tuple[FrozenNorm | None, FrozenNorm | None, FrozenNorm | None, FrozenNorm | None]
    pattern: Tensor  # (heads, queries, keys)
    V: Tensor  # (features, key heads * head features)
    v_bias: Tensor  # (positions, key heads * head features): biases, and values that are at their limit
    v_free: Tensor | None  # what values are multiplied with: 0 at a limit, or by a norm within; None if nothing
    O: Tensor  # (heads * head features, features)
    o_bias: Tensor
    start: Tensor
    net: Tensor
    end: Tensor

    def attend(self, x: Tensor, bias: bool = False) -> Tensor:
        """What attention adds for a part (positions, features) of the stream; with its constants if `bias`."""
        before, behind = self.norms[:2]
        if before is not None and self.place == "before":
            x = before.part(x) + (before.bias if bias else 0.0)
        v = x @ self.V
        v = v if self.v_free is None else v * self.v_free
        v = v + self.v_bias if bias else v
        heads, T = self.pattern.shape[:2]
        width = self.O.shape[0] // heads
        v = v.view(T, -1, width).transpose(0, 1)  # (KV, T, D)
        z = self.pattern @ v.repeat_interleave(heads // v.shape[0], 0)
        y = z.transpose(0, 1).reshape(T, -1) @ self.O
        y = y + self.o_bias if bias else y
        if behind is not None:
            y = behind.part(y) + (behind.bias if bias else 0.0)
        return y * self.scale

    def __post_init__(self) -> None:
        # What is added whatever the stream holds.
        self.constant = self.attend(votive.zeros_like(self.start), bias=True)  # (T, C)

    # --- backwards ----------------------------------------------------------------------------

    def _attended(self, g: Tensor, constant: Tensor) -> Tensor:
        """The gradient by what attention reads, from that by what it adds; its constants' effect is added up."""
        B, T, _ = g.shape
        constant += (g * self.constant[:T]).sum((1, 2))
        g = g * self.scale
        before, behind = self.norms[:2]
        if behind is not None:
            g = behind.at(slice(T)).back(g)
        heads, width = self.pattern.shape[0], self.O.shape[0] // self.pattern.shape[0]
        z = (g @ self.O.t()).view(B, T, heads, width).permute(2, 1, 0, 3).reshape(heads, T, B * width)
        v = self.pattern[:, :T, :T].transpose(1, 2) @ z  # (H, T, B D)
        shared = self.V.shape[1] // width
        v = v.view(shared, heads // shared, T, B, width).sum(1).permute(2, 1, 0, 3).reshape(B, T, -1)
        v = v if self.v_free is None else v * self.v_free[:T]
        y = v @ self.V.t()
        return before.at(slice(T)).back(y) if before is not None and self.place == "before" else y

    def _from_middle(self, g: Tensor, constant: Tensor) -> Tensor:
        """From between attention and net to before the layer."""
        first, T = self.norms[0], g.shape[1]
        if self.place == "before":
            return g + self._attended(g, constant)
        assert first is not None, "norms of the stream are there"
        if self.place == "sum":
            constant += (g * first.bias).sum((1, 2))
            g = first.at(slice(T)).back(g)
            return g + self._attended(g, constant)
        g = g + self._attended(g, constant)
        constant += (g * first.bias).sum((1, 2))
        return first.at(slice(T)).back(g)

    def _second(self, g: Tensor, constant: Tensor) -> Tensor:
        """Through a norm of the stream that the net stands beside."""
        norm = self.norms[2]
        assert norm is not None, "norms of the stream are there"
        constant += (g * norm.bias).sum((1, 2))
        return norm.at(slice(g.shape[1])).back(g)

    def by_written(self, g: Tensor, constant: Tensor) -> Tensor:
        """The gradient by what the net adds, from that by the stream behind the layer."""
        return self._second(g, constant) if self.place == "sum" else g

    def below(self, written: Tensor, read: Tensor | None, constant: Tensor) -> Tensor:
        """The gradient by the stream before the layer, from those by what the net adds and by what it reads."""
        if self.parallel:
            return written + self._attended(written, constant) + (0.0 if read is None else read)
        g = written if read is None else written + read
        if self.place == "stream":
            g = self._second(g, constant)
        return self._from_middle(g, constant)

    def from_read(self, read: Tensor, constant: Tensor) -> Tensor:
        """The gradient by the stream before the layer, from that by what the net alone reads."""
        if self.parallel:
            return read
        return self._from_middle(self._second(read, constant) if self.place == "stream" else read, constant)

    def norm_of_net(self) -> FrozenNorm | None:
        """The norm between the stream and what the net is given."""
        return self.norms[2] if self.place == "before" else None

    def norm_of_written(self) -> FrozenNorm | None:
        """The norm between what the net gives and what is added."""
        return self.norms[3]


class FrozenDecoder:
    """All layers of a decoder for one text, and how the logits read the stream.

    >>> config = votive.models.LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=16, num_hidden_layers=1,
    ...     num_attention_heads=2)
    >>> from votive.glass.circuits.frozen_decoder import FrozenDecoder
    >>> frozen = FrozenDecoder(votive.models.LlamaForCausalLM(config).eval(), votive.tensor([[1, 2, 3]]))
    >>> frozen.layers[0].attend(frozen.layers[0].start).shape
    votive.Size([3, 8])
    """

    def __init__(self, model: Module, given: object, places: tuple[str, ...] = ()) -> None:
        self.model = uncompiled(model)
        self.weights = Weights(self.model)
        for i in range(self.weights.layers):
            self.weights._attention(i)  # one without heads is told before the run
        args, kwargs = inputs_of(given)
        seen = AllSites(self.model, (*_OF_LAYERS, *places))
        with votive.no_grad(), seen:
            output = self.model(*args, **kwargs)
        self.values = seen.values
        self.tolerance = _tolerance(self.model)
        start = self.values["layers.0.resid_pre"]
        if start.shape[0] != 1:
            raise ValueError(f"circuits: give one text; these are {start.shape[0]}.")
        self.dtype = votive.float64 if start.dtype == votive.float64 else votive.float32
        self.positions, self.width, self.device = start.shape[1], start.shape[2], start.device
        with votive.no_grad():
            self.layers = [self._layer(i) for i in range(self.weights.layers)]
            self._check_stream()
            self._read_logits(output.logits)

    def at(self, name: str) -> Tensor:
        """A value of the run, without its dimension of samples."""
        if name not in self.values:
            raise LookupError(
                f"circuits: {type(self.model).__name__} has no place {name!r}, such as a norm of one's own "
                "lacks, so that not everything can be held fast."
            )
        return self.values[name][0].to(self.dtype)

    def norm(self, norm: Any, name: str) -> FrozenNorm | None:
        """A norm with the scale it had."""
        if norm is None:
            return None
        if not isinstance(norm, (LayerNorm, RMSNorm)):
            raise LookupError(f"circuits: of a {type(norm).__name__} no scale is known to hold fast.")
        scale, zero = 1 / self.at(f"{name}.scale"), votive.zeros(self.width, dtype=self.dtype, device=self.device)
        bias = getattr(norm, "bias", None)
        weight = zero + 1 if norm.weight is None else _gain(norm).to(self.dtype)
        bias = zero if bias is None else bias.detach().to(self.dtype)
        return FrozenNorm(scale, weight, bias, isinstance(norm, LayerNorm))

    def _layer(self, i: int) -> FrozenLayer:
        w, owner, at = self.weights, self.weights.parts.layers[i], f"layers.{i}"
        attention, (before, behind, before_net, behind_net) = w._attention(i), owner.norms()
        first = self.norm(before, f"{at}.ln1")
        # In a parallel layer the net may be given what attention is given.
        second = first if owner.parallel and before_net is None else self.norm(before_net, f"{at}.ln2")
        norms = (first, self.norm(behind, f"{at}.ln1_post"), second, self.norm(behind_net, f"{at}.ln2_post"))
        pattern = self.at(f"{at}.attn.pattern")
        if pattern.shape[1:] != (self.positions, self.positions):
            raise ValueError("circuits: give the whole text and no cache: values in a cache have no sources.")
        start = self.at(f"{at}.resid_pre")
        read = start if first is None or owner.norm_place == "sum" else first.part(start) + first.bias
        V, v_bias, free = self._values(i, attention, read)
        layer = FrozenLayer(
            owner.norm_place,
            owner.parallel,
            owner.residual_scale,
            norms,
            pattern,
            V,
            v_bias,
            free,
            w.W_O[i].to(self.dtype).flatten(0, 1),
            w._out_bias(i).to(self.dtype),
            start,
            self.at(f"{at}.mlp_out"),
            self.at(f"{at}.resid_post"),
        )
        read = read if owner.norm_place == "stream" else start
        self.same(layer.attend(read, bias=True), self.at(f"{at}.attn_out"), f"attention of layer {i}")
        whole = read + self.at(f"{at}.attn_out")
        if owner.norm_place == "sum":
            assert first is not None, "norms of the stream are there"
            assert second is not None, "norms of the stream are there"
            whole = first.part(whole) + first.bias + layer.net
            whole = second.part(whole) + second.bias
        elif owner.norm_place == "stream":
            assert second is not None, "norms of the stream are there"
            whole = second.part(whole) + second.bias + layer.net
        else:
            whole = whole + layer.net
        self.same(whole, layer.end, f"what layer {i} hands on")
        return layer

    def _values(self, i: int, attention: Any, read: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """The matrix that makes values, what is added to them, and what they are multiplied with before that."""
        w, T = self.weights, self.positions
        if getattr(attention, "latent", False):
            # In two steps with a norm between, of which the scale is held fast.
            own, norm = attention.own, attention.kv_a_layernorm
            (A, a), (B, b) = (_linear(m) for m in (attention.kv_a_proj_with_mqa, attention.kv_b_proj))
            A, a = (part.to(self.dtype)[..., : own.kv_rank] for part in (A, a))
            B, b = (p.to(self.dtype).unflatten(-1, (-1, own.fixed + own.value))[..., own.fixed :] for p in (B, b))
            B, b, gain = B.flatten(-2), b.flatten(-2), _gain(norm).to(self.dtype)
            scale = ((read @ A + a).square().mean(-1, keepdim=True) + norm.eps).rsqrt()  # (T, 1)
            return (A * gain) @ B, ((a * gain) @ B) * scale + b, scale
        V, bias = w.W_V[i].to(self.dtype), w.b_V[i].to(self.dtype)  # (KV, C, D), (KV, D)
        V, v_bias = V.transpose(0, 1).flatten(1), bias.flatten().expand(T, -1)
        if attention.clip is None:
            return V, v_bias, None
        v = read @ V + v_bias
        free = (v.abs() <= attention.clip).to(self.dtype)
        return V, votive.where(free > 0, v_bias, v.clamp(-attention.clip, attention.clip)), free

    def same(self, got: Tensor, expected: Tensor, what: str) -> None:
        """Refuse a model that does not compute what its matrices say."""
        off, size = float((got - expected).abs().max()), float(expected.abs().max())
        if not off <= 4 * self.tolerance * max(size, 1e-30):
            raise ValueError(
                f"circuits: {what} is not a product of matrices and what is held fast (off by {off:.1e} of "
                f"{size:.1e}), so its parts cannot be separated."
            )

    def _check_stream(self) -> None:
        for i, (a, b) in enumerate(zip(self.layers[:-1], self.layers[1:], strict=True)):
            self.same(a.end, b.start, f"the stream behind layer {i}")

    def _read_logits(self, logits: Tensor) -> None:
        design = next(m for m in self.model.modules() if hasattr(m, "stack")).design
        W, b = self.weights.W_U.to(self.dtype), self.weights.b_U.to(self.dtype)
        self.W_U, self.b_U = W * design.logit_scale, b * design.logit_scale
        self.last = self.norm(self.weights.parts.norm, "ln_final")
        if self.W_U.shape[0] != self.width or logits.shape[1] != self.positions:
            raise ValueError(
                f"circuits: {type(self.model).__name__} reads its logits from {self.W_U.shape[0]} features at "
                f"{logits.shape[1]} positions; the stream has {self.width} at {self.positions}."
            )
        end = self.layers[-1].end
        normed = end if self.last is None else self.last.part(end) + self.last.bias
        #: Before a cap, (positions, tokens).
        self.logits = normed @ self.W_U + self.b_U
        cap = design.logit_cap
        shown = self.logits if cap is None else cap * votive.tanh(self.logits / cap)
        self.same(shown, logits[0].to(self.dtype), "what makes the logits of the stream")
        self.chances = votive.softmax(logits[0].to(self.dtype), -1)

    def logit_reads(self, tokens: list[int], position: int) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of logits less the mean one: by the stream (tokens, features); constants, and values."""
        rows = (self.W_U[:, tokens] - self.W_U.mean(1, keepdim=True)).t()  # (K, C)
        constant = self.b_U[tokens] - self.b_U.mean()
        value = self.logits[position, tokens] - self.logits[position].mean()
        if self.last is None:
            return rows, constant, value
        here = self.last.at(slice(position, position + 1))
        return here.back(rows), constant + rows @ self.last.bias, value
