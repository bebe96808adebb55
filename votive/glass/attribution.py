"""Direct logit attribution: what each part of a model adds to a logit. Knows no model class.

The stream is a sum of what embedding, heads and MLPs write into it. With the scale of the last norm
held fast, a logit is a linear function of the stream, and so a sum over what was written: Elhage et
al. 2021, "A mathematical framework for transformer circuits".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import votive

from ..nn import Module
from ..surface.block_tensor import BlockTensor
from ..tensor import Tensor
from .frozen_norm import freeze
from .heatmap import Heatmap
from .parts import Parts, parts_of
from .plots import Bars, Plottable
from .residual_stream import index_in_run, logits_of
from .residual_writes import Call, Layer, Write, WriteRecorder, writes_of

# How far a product that rounds its inputs to 8 bits may be from the exact one, of its largest number.
_ROUNDING = 0.05


@dataclass(frozen=True)
class Attribution(Plottable):
    """What each component adds to the logit of the target, or to its difference from another one's.

    `values` are (components, samples) and sum to `logit`, which is the head's result at `position`:
    before a cap or a scale that a model puts on it. Products with weights in blocks may round their inputs; what that
    adds is a component of its own, "rounding".
    """

    names: list[str]
    values: Any
    logit: Any  # (samples,)
    target: Any
    against: Any
    position: int
    heads: dict[str, list[str]]  # attention: the names of its heads

    def __getitem__(self, name: str) -> Tensor:
        """The values (samples,) of a component, or the sum of those whose names begin with it."""
        rows = [i for i, n in enumerate(self.names) if n == name or n.startswith(name + ".")]
        if not rows:
            raise KeyError(f"{name!r} is not a component; there are {', '.join(self.names[:8])}, ….")
        return self.values[rows].sum(0)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists."""
        return {
            "names": list(self.names),
            "values": self.values.tolist(),
            "logit": self.logit.tolist(),
            "target": self.target.tolist(),
            "against": None if self.against is None else self.against.tolist(),
            "position": self.position,
        }

    def top(self, k: int = 10, sample: int = 0) -> list[tuple[str, float]]:
        """The components that matter most, largest first."""
        found = zip(self.names, self.values[:, sample].tolist(), strict=True)
        return sorted(found, key=lambda pair: -abs(pair[1]))[:k]

    def __str__(self) -> str:
        rows = [f"{n:<40} {v:+.4f}" for n, v in self.top(20)]
        return "\n".join([*rows, f"{'logit':<40} {float(self.logit[0]):+.4f}"])

    def figure(self, what: str = "top", sample: int = 0, k: int = 24) -> Any:
        """Bars of the `k` largest components ("top"), or a heat map of layers and "heads"."""
        if what == "top":
            names, found = zip(*self.top(k, sample), strict=True)
            return Bars(list(found), list(names), title="direct logit attribution", x_name="logit")
        if what != "heads" or not self.heads:
            raise ValueError(f"Attribution: {what!r} cannot be drawn; choose top, or heads.")
        most = max(len(h) for h in self.heads.values())
        at = {n: i for i, n in enumerate(self.names)}
        rows = [
            [float(self.values[at[h], sample]) for h in names] + [float("nan")] * (most - len(names))
            for names in self.heads.values()
        ]
        return Heatmap(
            rows,
            list(self.heads),
            [str(i) for i in range(most)],
            signed=True,
            legend="logit",
            title="direct logit attribution of heads",
            x_name="head",
            y_name="layer",
        )


def logit_attribution(
    model: Module,
    *args: object,
    target: object = None,
    against: object = None,
    position: int = -1,
    heads: bool = True,
    parts: Parts | Mapping[str, Any] | None = None,
    **kwargs: object,
) -> Attribution:
    """Split the logit of `target` at a position into what each part of the model adds to it.

    `target` is a token or one for each sample, by default the likeliest one; with `against` it is
    the difference of two logits that is split. `position` counts from the beginning of the text,
    also when a cache holds its first part, or if negative from its end. Components are "embedding"
    (all that enters the first layer), for each layer its heads, their bias and its MLP, the biases
    of norm and head.

    >>> _ = votive.manual_seed(0)
    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> model = votive.models.LlamaForCausalLM(config).eval()
    >>> found = votive.glass.logit_attribution(model, votive.tensor([[1, 2, 3]]), target=4)
    >>> found.names[:3]
    ['embedding', 'model.layers.0.self_attn.head0', 'model.layers.0.self_attn.head1']
    >>> votive.allclose(found.values.sum(0), found.logit, atol=1e-6)
    True
    """
    here = index_in_run(position, args, kwargs, "logit_attribution")
    found = _attributed(parts_of(model, parts), args, kwargs, (here, target, against), heads)
    return replace(found, position=position)


def _attributed(
    found: Parts, args: tuple[Any, ...], kwargs: dict[str, Any], asked: tuple[int, Any, Any], heads: bool
) -> Attribution:
    model, position = found.model, asked[0]
    with votive.no_grad():
        written = _Written(position, heads)
        recorder = WriteRecorder(found, written.add)
        with recorder:
            result = model(*args, **kwargs)
        inner = found.inner() if recorder.last is None else None
        if inner is not None:
            return _attributed(inner, args, kwargs, asked, heads)
        if recorder.last is None:
            raise LookupError(f"{type(model).__name__} did not call its layers {found.names}.")
        read = _Reader(found, recorder, result, *asked)
        return read.attribution(written)


class _Reader:
    """The linear function that the last norm and the head are, at one position."""

    def __init__(
        self, parts: Parts, recorder: WriteRecorder, result: object, position: int, target: object, against: object
    ) -> None:
        self.position = position
        assert recorder.last is not None
        if recorder.between:
            raise ValueError(
                f"logit_attribution: {', '.join(recorder.between)} lie between the last layer and the last norm, so a "
                "logit is not a sum over what the layers wrote."
            )
        final = _at(recorder.last.after if recorder.end is None else recorder.end, position)
        self.final, self.eps = final.double(), votive.finfo(final.dtype).eps
        scores = recorder.head if recorder.head is not None else logits_of(result)
        scores = _at(scores, position).double()  # (B, V)
        B = final.shape[0]
        self.target = _tokens("target", scores.argmax(-1) if target is None else target, B, scores)
        self.against = None if against is None else _tokens("against", against, B, scores)
        self.logit = _of(scores, self.target)
        weight, bias = _matrix(parts, final.shape[-1])
        self.rounds = isinstance(weight, BlockTensor)
        self.direction = weight[self.target].double()
        self.bias = votive.zeros(B, dtype=votive.float64)
        if bias is not None:
            self.bias = bias[self.target].double()
        if self.against is not None:
            self.logit = self.logit - _of(scores, self.against)
            self.direction = self.direction - weight[self.against].double()
            if bias is not None:
                self.bias = self.bias - bias[self.against].double()
        self.norm = None if parts.norm is None else freeze(parts.norm, final)
        if recorder.normed is not None and recorder.scored is not None:
            # T5 scales between norm and head.
            self.direction = self.direction * _factor(recorder.normed, recorder.scored, position)

    def read(self, part: Tensor) -> Tensor:
        """What a part (samples, features) of the stream adds, (samples,)."""
        part = part.double()
        if self.norm is not None:
            part = self.norm.part(part)
        return (part * self.direction).sum(-1)

    def attribution(self, written: _Written) -> Attribution:
        rows = [self.read(v) for v in written.vectors]
        rest = self.final - sum(v.double() for v in written.vectors)
        known = [*written.names]
        if float(rest.abs().max()) > 1e-5 * float(self.final.abs().max()):
            # Something between the layers writes too, or half precision rounds the stream.
            known.append("rest")
            rows.append(self.read(rest))
        biases = self.bias
        if self.norm is not None:
            biases = biases + (self.norm.bias * self.direction).sum(-1)
        if bool((biases != 0).any()):
            known.append("bias")
            rows.append(biases)
        table = votive.stack(rows)
        gap = float((table.sum(0) - self.logit).abs().max())
        size = float(table.abs().sum(0).max())
        if self.rounds and 0 < gap <= _ROUNDING * size:
            known.append("rounding")
            table = votive.cat([table, (self.logit - table.sum(0))[None]])
            gap = 0.0
        if gap > max(1e-3, 8 * self.eps) * size:
            raise ValueError(
                f"logit_attribution: the components sum to {table.sum(0).tolist()}, but the "
                f"logits are {self.logit.tolist()}; name the last norm and the head with "
                "parts={'norm': ..., 'head': ...}."
            )
        return Attribution(
            known, table.float(), self.logit.float(), self.target, self.against, self.position, written.groups
        )


def _factor(before: Tensor, after: Tensor, position: int) -> Any:
    """By what number (samples, 1) vectors were multiplied between two places; 1 if otherwise."""
    if before is after or before.shape != after.shape:
        return 1.0
    a, b = _at(before, position).double(), _at(after, position).double()
    factor = (a * b).sum(-1, keepdim=True) / a.square().sum(-1, keepdim=True).clamp(min=1e-300)
    return factor if _close(a * factor, b, after.dtype) else 1.0


def _tokens(what: str, given: object, batch: int, scores: Tensor) -> Tensor:
    found = votive.as_tensor(given).long().reshape(-1)
    if found.numel() not in (1, batch):
        raise ValueError(f"logit_attribution: {what} must be 1 or {batch} tokens, got {given!r}.")
    found = found.expand(batch)
    if not bool(((found >= 0) & (found < scores.shape[-1])).all()):
        raise IndexError(f"logit_attribution: {what} {found.tolist()} is outside 0..{scores.shape[-1] - 1}.")
    return found


def _of(scores: Tensor, token: Tensor) -> Tensor:
    return scores.gather(-1, token.unsqueeze(-1)).squeeze(-1)


def _matrix(parts: Parts, width: int) -> tuple[Any, Any]:
    """The rows of the head, and its bias; a model without one scores with its embeddings."""
    holder = parts.head if parts.head is not None else parts.embedding
    weight = getattr(holder, "weight", None)
    if weight is None or weight.ndim != 2 or width not in weight.shape:
        raise LookupError(
            f"{type(parts.model).__name__}: there is no head with a matrix of {width} columns; "
            "name it with parts={'head': ...}."
        )
    weight = weight.detach()
    bias = getattr(parts.head, "bias", None)
    return (weight if weight.shape[1] == width else weight.t()), bias


class _Written:
    """What has been written into the stream at one position, layer by layer."""

    def __init__(self, position: int, heads: bool) -> None:
        self.position, self.heads = position, heads
        self.names: list[str] = []
        self.vectors: list[Any] = []  # (samples, features) each
        self.groups: dict[str, list[str]] = {}

    def add(self, layer: Layer) -> None:
        """The writes of a layer that has run."""
        before, after = _at(layer.before, self.position), _at(layer.after, self.position)
        if not self.names:
            self._put("embedding", before)
        writes = writes_of(layer)
        if writes is None:
            if self.heads:
                raise ValueError(
                    f"logit_attribution: {layer.name} does not add the results of its modules to "
                    "its stream, so its heads cannot be told apart; use heads=False."
                )
            self._put(layer.name, after.double() - before.double())
            return
        for write in writes:
            if not self.heads or not write.source.attends:
                self._put(write.source.address, _at(write.value, self.position))
                continue
            own = _heads(write, self.position)
            self.groups[write.source.address] = [n for n, _ in own if ".head" in n]
            for name, vector in own:
                self._put(name, vector)

    def _put(self, name: str, vector: Tensor) -> None:
        self.names.append(name)
        # A copy: a view would hold all positions.
        self.vectors.append(vector.clone())


def _at(x: Tensor, position: int) -> Tensor:
    """The vectors (samples, features) at a position."""
    if x.dim() != 3 or not -x.shape[1] <= position < x.shape[1]:
        raise IndexError(f"logit_attribution: there is no position {position} in {tuple(x.shape)}.")
    return x[:, position]


def _heads(write: Write, position: int) -> list[tuple[str, Any]]:
    """What each head of an attention writes: its part of the last product's input."""
    call = write.source
    count = call.attends
    last = _last_product(call)
    if last is None or last.given.shape[-1] % count:
        raise ValueError(
            f"logit_attribution: {call.address} has no module such as o_proj or c_proj that turns "
            f"its {count} heads into the stream; use heads=False."
        )
    stored = last.module.weight.detach()
    # Products with blocks of few bits may round their inputs: heads are parts of the exact product.
    rounds = isinstance(stored, BlockTensor)
    weight = (stored.dequantize() if rounds else stored).double()
    z, y = _at(last.given, position).double(), _at(last.output, position).double()
    bias = getattr(last.module, "bias", None)
    bias = votive.zeros_like(y[0]) if bias is None else bias.detach().double()
    # Linear layers have (outputs, inputs), GPT-2 has it the other way round: trying tells.
    ways = [w for w in (weight, weight.t()) if w.shape == (y.shape[-1], z.shape[-1])]
    near = [w for w in ways if _close(z @ w.t() + bias, y, last.output.dtype, _ROUNDING if rounds else 0.0)]
    if not near or not _close(y, _at(call.output, position).double(), call.output.dtype):
        raise ValueError(
            f"logit_attribution: {last.address} does not give what {call.address} gives, so that "
            "its heads cannot be told apart; use heads=False."
        )
    split = near[0].unflatten(1, (count, -1))  # (C, H, D)
    parts = votive.einsum("bhd,chd->bhc", z.unflatten(-1, (count, -1)), split)
    out = [(f"{call.address}.head{h}", parts[:, h]) for h in range(count)]
    if bool((bias != 0).any()):
        out.append((f"{call.address}.bias", bias.expand_as(y)))
    if rounds:
        out.append((f"{call.address}.rounding", y - (z @ near[0].t() + bias)))
    if write.norm is None:
        return out
    frozen = freeze(write.norm.module, _at(write.norm.given, position))
    out = [(n, frozen.part(v)) for n, v in out]
    if bool((frozen.bias != 0).any()):
        out.append((f"{write.norm.address}.bias", frozen.bias.expand_as(y)))
    return out


def _last_product(call: Call) -> Call | None:
    """The last call inside with a matrix, which ends attention."""
    found = None
    for c in call.inner:
        weight = getattr(c.module, "weight", None)
        if weight is not None and weight.ndim == 2 and c.output is not None:
            found = c
        found = _last_product(c) or found
    return found


def _close(a: Tensor, b: Tensor, dtype: votive.dtype, more: float = 0.0) -> bool:
    slack = max(1e-4, 8 * votive.finfo(dtype).eps, more)
    return float((a - b).abs().max()) <= slack * max(float(b.abs().max()), 1e-30)
