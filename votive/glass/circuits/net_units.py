"""What a decoder's nets are made of in an attribution graph: features of transcoders, or neurons. Knows no family.

A unit reads a direction of the stream and writes one. A gated neuron is a product of two readings; half of it is
said of each, with the other held fast (and the activation's slope through the origin): then what its inputs say adds up
to the neuron, as in Jafari et al. 2025, arXiv:2508.21258.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import votive

from ...tensor import Tensor
from ..address import Pattern
from ..frozen_norm import FrozenNorm
from ..head_weights import _products
from ..site_names import translated
from .frozen_decoder import FrozenDecoder

if TYPE_CHECKING:
    from ..features.coder import SAE

GATES = ("half", "frozen")
_PLACE = re.compile(r"\^?layers\.(\d+)\.(mlp:in|mlp_in|ln2\.normalized|mlp_out|mlp)")


@dataclass
class Units:
    """The units of one layer's net in one run, by position; `values` are what their readings add up to.

    `constant` (positions, features) is what the net adds whatever it reads, `rest` what it adds besides its units.
    """

    kind: str  # "feature", "neuron" or ""
    positions: Tensor
    numbers: Tensor
    activations: Tensor
    values: Tensor
    constant: Tensor
    rest: Tensor
    read_norm: FrozenNorm | None
    write_norm: FrozenNorm | None
    scale: float
    W_write: Tensor  # (numbers, features)
    W_read: Tensor  # (features, numbers)
    b_read: Tensor
    gates: tuple[Tensor, Tensor, Tensor, Tensor] | None = None  # matrix and bias; how much gates and neurons count
    W_skip: Tensor | None = None  # (features read, features given)
    every: Tensor | None = None  # (positions, numbers): activations where all are units
    _vectors: Tensor | None = None

    def __len__(self) -> int:
        return self.positions.shape[0]

    def count_before(self, positions: int) -> int:
        """How many units stand at the first positions."""
        return int((self.positions < positions).sum())

    def to_stream(self, y: Tensor, positions: Tensor | slice, bias: bool = False) -> Tensor:
        """What is added, of what a net gives at positions."""
        if self.write_norm is not None:
            y = self.write_norm.at(positions).part(y) + (self.write_norm.bias if bias else 0.0)
        return y * self.scale

    def _given(self, g: Tensor) -> Tensor:
        """The gradient by what the net gives, from that by what is added."""
        g = g * self.scale
        return g if self.write_norm is None else self.write_norm.at(slice(g.shape[1])).back(g)

    def writes(self, chosen: Tensor) -> Tensor:
        """What units add to the stream, (chosen, features)."""
        given = self.W_write[self.numbers[chosen]] * self.activations[chosen].unsqueeze(-1)
        return self.to_stream(given, self.positions[chosen])

    def effects(self, g: Tensor) -> Tensor:
        """What all units at the gradient's positions do, (rows, units)."""
        if self.every is not None:
            return ((self._given(g) @ self.W_write.t()) * self.every[: g.shape[1]]).flatten(1)
        if self._vectors is None:
            self._vectors = self.writes(votive.arange(len(self), device=self.positions.device))
        here = self.count_before(g.shape[1])
        return dots(g, self._vectors[:here], self.positions[:here])

    def reads(self, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """By what units read the stream at their positions, (chosen, features), and what they read besides."""
        at, number = self.positions[chosen], self.numbers[chosen]
        rows, constant = self.W_read.t()[number], self.b_read[number]
        if self.gates is not None:
            W, b, by_gate, by_neuron = self.gates
            share, other = by_neuron[at, number], by_gate[at, number]
            rows = rows * share.unsqueeze(-1) + W.t()[number] * other.unsqueeze(-1)
            constant = constant * share + b[number] * other
        if self.read_norm is None:
            return rows, constant
        return self.read_norm.at(at).back(rows), constant + rows @ self.read_norm.bias

    def around(self, g: Tensor) -> Tensor | None:
        """The gradient by the stream that a net reads, of what goes around its units."""
        if self.W_skip is None:
            return None
        read = self._given(g) @ self.W_skip.t()
        return read if self.read_norm is None else self.read_norm.at(slice(g.shape[1])).back(read)


def dots(g: Tensor, vectors: Tensor, positions: Tensor) -> Tensor:
    """Products of gradients (rows, positions, features) with vectors (units, features) at ascending positions.

    >>> from votive.glass.circuits.net_units import dots
    >>> dots(votive.ones(2, 3, 4), votive.ones(5, 4), votive.tensor([0, 0, 1, 2, 2])).shape
    votive.Size([2, 5])
    """
    parts = [g[:, :0].flatten(1)]
    begin = 0
    for at, count in enumerate(positions.bincount(minlength=1).tolist()):
        if count:
            parts.append(g[:, at] @ vectors[begin : begin + count].t())
            begin += count
    return votive.cat(parts, 1)


def all_units(
    frozen: FrozenDecoder, coders: Mapping[int, SAE] | Iterable[SAE] | None, others: str, gates: str
) -> list[Units]:
    """The units of every layer: features where there is a coder, else neurons or none."""
    found = placed(frozen, coders)
    return [
        _of_coder(frozen, i, *found[i])
        if i in found
        else _of_neurons(frozen, i, gates)
        if others == "neurons"
        else _none(frozen, i)
        for i in range(len(frozen.layers))
    ]


def placed(frozen: FrozenDecoder, coders: Mapping[int, SAE] | Iterable[SAE] | None) -> dict[int, tuple[SAE, str, str]]:
    """Transcoders by layer, each with what it reads and what it writes."""
    found: dict[int, tuple[SAE, str, str]] = {}
    if coders is None:
        return found
    if hasattr(coders, "encode"):
        raise TypeError("circuits: coders must be a list of transcoders, or a dict of layers; give [coder].")
    named = coders.items() if isinstance(coders, Mapping) else ((None, c) for c in coders)
    for said, coder in named:
        c = coder.config
        if c.role != "transcoder":
            raise ValueError(
                f"circuits: a {c.role} does not say how a net makes what it gives of what it reads; transcoders do."
            )
        (layer, reads), (other, writes) = (_place(frozen, s, said) for s in (c.site, c.writes or c.site))
        writes = "mlp_out" if writes == "mlp_out" else "mlp"
        if reads in ("mlp", "mlp_out") or layer != other or said not in (None, layer):
            raise ValueError(
                f"circuits: the coder reads {c.site!r} and writes {c.writes!r}"
                f"{'' if said is None else f', and was given for layer {said}'}; it must replace the MLP of one layer."
            )
        if layer in found:
            raise ValueError(f"circuits: there are two coders for the net of layer {layer}.")
        if not 0 <= layer < len(frozen.layers):
            raise IndexError(f"circuits: a coder is for layer {layer} of 0..{len(frozen.layers) - 1}.")
        if (c.d_in, c.gives) != (frozen.width, frozen.width):
            raise ValueError(
                f"circuits: the coder of layer {layer} reads {c.d_in} numbers and gives {c.gives}; the stream "
                f"has {frozen.width}."
            )
        found[layer] = coder, reads, writes
    return found


def _place(frozen: FrozenDecoder, site: str, said: int | None) -> tuple[int, str]:
    """Which layer an address is in, and what is there: "mlp:in", "mlp", or a named place."""
    if not site and said is not None:
        return said, "mlp:in"
    named = _PLACE.fullmatch(translated(site))
    if named is not None:
        return int(named[1]), named[2]
    parts = frozen.weights.parts
    pattern = Pattern(site) if site else None
    if pattern is not None and pattern.regex is not None:
        for i, (name, layer) in enumerate(zip(parts.names, parts.layers, strict=True)):
            for path, module in layer.named_modules():
                if path and module is layer.net and pattern.regex.fullmatch(f"{name}.{path}#0"):
                    return i, "mlp:in" if pattern.side == "in" else "mlp"
    raise LookupError(
        f"circuits: the coder's place {site!r} is no net of {type(frozen.model).__name__}; its configuration "
        "must say site='layers.3.mlp:in' and writes='layers.3.mlp', say; where it says nothing, give a dict of layers."
    )


def _none(frozen: FrozenDecoder, i: int) -> Units:
    layer = frozen.layers[i]
    no, empty = votive.zeros(0, dtype=frozen.dtype), votive.zeros(0, dtype=votive.int64)
    nothing = votive.zeros(0, frozen.width, dtype=frozen.dtype)
    constant = votive.zeros_like(layer.net)
    found = Units("", empty, empty, no, no, constant, layer.net, None, None, 1.0, nothing, nothing.t(), no)
    return _moved(found, frozen)


def _moved(units: Units, frozen: FrozenDecoder) -> Units:
    for name in ("positions", "numbers", "activations", "values", "W_write", "W_read", "b_read"):
        setattr(units, name, getattr(units, name).to(frozen.device))
    return units


def _of_neurons(frozen: FrozenDecoder, i: int, gates: str) -> Units:
    layer, net = frozen.layers[i], frozen.weights._net(i)
    if hasattr(net, "nets") or not hasattr(net, "halves"):
        raise LookupError(
            f"circuits: the net of layer {i}, a {type(net).__name__}, has no neurons that are always the same "
            "ones; give a transcoder for it, or others='error' to take what it adds as a whole."
        )
    up, gate, down = (None if p is None else (p[0].to(frozen.dtype), p[1].to(frozen.dtype)) for p in _products(net))
    assert up is not None, "every net has neurons"
    assert down is not None, "and writes"
    at = f"layers.{i}.mlp"
    pre, post = frozen.at(f"{at}.pre"), frozen.at(f"{at}.post")  # (T, F)
    T, F = post.shape
    made, values = net.act_fn(pre), pre
    counted: tuple[Tensor, Tensor, Tensor, Tensor] | None = None
    if gate is not None:
        linear = frozen.at(f"{at}.pre_linear")
        # The slope of the line from the origin; at it, nothing is to be said of the gate.
        slope = votive.where(pre.abs() > 1e-30, made / pre, 0.0)
        half = 0.5 if gates == "half" else 0.0
        counted = (gate[0], gate[1], half * linear * slope, (1 - half) * made)
        made = made * linear
        values = post
    frozen.same(made, post, f"the activation of layer {i}")
    device = frozen.device
    units = Units(
        "neuron",
        votive.arange(T, device=device).repeat_interleave(F),
        votive.arange(F, device=device).repeat(T),
        post.flatten(),
        values.flatten(),
        layer.net,
        layer.net,
        layer.norm_of_net(),
        layer.norm_of_written(),
        layer.scale,
        down[0],
        up[0],
        up[1],
        counted,
        every=post,
    )
    units.constant = units.to_stream(down[1].expand(T, -1), slice(T), bias=True)
    written = units.to_stream(post @ down[0], slice(T))
    frozen.same(written + units.constant, layer.net, f"the net of layer {i}")
    units.rest = layer.net - units.constant
    return units


def _of_coder(frozen: FrozenDecoder, i: int, coder: SAE, reads: str, writes: str) -> Units:
    layer, T, kind = frozen.layers[i], frozen.positions, frozen.dtype
    norm = layer.norm_of_net()
    if reads == "ln2.normalized":
        if norm is None:
            raise LookupError(f"circuits: the net of layer {i} has no norm before it.")
        norm = FrozenNorm(norm.scale, votive.ones_like(norm.weight), votive.zeros_like(norm.bias), norm.centred)
    elif reads == "mlp_in":
        norm = None
    stream = frozen.at(f"layers.{i}.mlp_in")
    read = stream if norm is None else norm.part(stream) + norm.bias  # (T, C)
    w = {n: p.detach().to(device=frozen.device, dtype=kind) for n, p in coder.state_dict().items()}
    c, scale_in, scale_out = coder.config, w["scale_in"], w["scale_out"]
    own = next(coder.parameters())
    with votive.no_grad():
        fired = coder.encode(read.to(device=own.device, dtype=own.dtype)).to(device=frozen.device, dtype=kind)
    W_read, bias = w["W_enc"] * scale_in, w["b_mag"] if c.kind == "gated" else w["b_enc"]
    if c.kind == "gated":
        W_read = W_read * w["r_mag"].exp()
    positions, numbers = fired.nonzero().t()
    units = Units(
        "feature",
        positions,
        numbers,
        fired[positions, numbers],
        (read @ W_read + bias)[positions, numbers],
        layer.net,
        layer.net,
        norm,
        layer.norm_of_written() if writes == "mlp" else None,
        layer.scale if writes == "mlp" else 1.0,
        w["W_dec"] / scale_out,
        W_read,
        bias,
    )
    constant, around = w["b_dec"] / scale_out, votive.zeros_like(layer.net)
    if c.skip:
        units.W_skip = w["W_skip"].t() * (scale_in / scale_out)  # (C, C)
        around = units.to_stream((stream if norm is None else norm.part(stream)) @ units.W_skip, slice(T))
        if norm is not None:
            constant = constant + norm.bias @ units.W_skip
    units.constant = units.to_stream(constant.expand(T, -1), slice(T), bias=True)
    units.rest = layer.net - units.constant - around
    return units


def left_over(units: Units, chosen: Tensor) -> Any:
    """What a net adds besides some of its units, (positions, features): the graph's error."""
    if not len(chosen):
        return units.rest
    return units.rest.index_add(0, units.positions[chosen], -units.writes(chosen))
