"""Recurrent networks whose products have weights of 8 bits: a step is two linear layers and the gates."""

from __future__ import annotations

from typing import Any, ClassVar

from ..... import nn
from .....nn.utils.rnn import PackedSequence, pad_packed_sequence
from .....ops.registry import F
from .....surface.quantized_tensor import QuantizedTensor
from .....tensor import Tensor
from ..observed import quantized_weight
from ..packed import PackedWeight


def _packed(weight: Tensor, bias: Tensor | None, qconfig: Any) -> PackedWeight:
    observer = qconfig.weight()
    observer(weight.detach())
    return PackedWeight(quantized_weight(weight, observer), bias)


def _lstm(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    i, f, g, o = gates.chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _gru(x: Tensor, y: Tensor, h: Tensor) -> Tensor:
    (xr, xz, xn), (hr, hz, hn) = x.chunk(3, -1), y.chunk(3, -1)
    z = (xz + hz).sigmoid()
    n = (xn + (xr + hr).sigmoid() * hn).tanh()
    return (1 - z) * n + z * h


class _Network(nn.Module):
    """What LSTM and GRU share: layers, directions, and the order of the loop."""

    _FLOAT: ClassVar[Any]
    _STATES: ClassVar[int]

    def __init__(self, mod: Any, qconfig: Any) -> None:
        super().__init__()
        for name in ("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional"):
            setattr(self, name, getattr(mod, name))
        if getattr(mod, "proj_size", 0):
            raise NotImplementedError(f"{type(self).__name__}: proj_size is not there with weights of 8 bits.")
        self.weights: list[tuple[PackedWeight, PackedWeight]] = []
        for layer in range(mod.num_layers):
            for side in ("", "_reverse")[: 1 + int(mod.bidirectional)]:
                end = f"_l{layer}{side}"
                pair = [
                    _packed(getattr(mod, f"weight_{k}{end}"), getattr(mod, f"bias_{k}{end}", None), qconfig)
                    for k in ("ih", "hh")
                ]
                self.weights.append((pair[0], pair[1]))

    def _get_name(self) -> str:
        return f"DynamicQuantized{type(self).__name__}"

    def extra_repr(self) -> str:
        own: Any = self
        text = f"{own.input_size}, {own.hidden_size}"
        text += f", num_layers={own.num_layers}" if own.num_layers != 1 else ""
        text += "" if own.bias else f", bias={own.bias}"
        text += f", batch_first={own.batch_first}" if own.batch_first else ""
        text += f", dropout={own.dropout}" if own.dropout else ""
        return text + (f", bidirectional={own.bidirectional}" if own.bidirectional else "")

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for k, pair in enumerate(self.weights):
            destination[f"{prefix}_all_weight_values.{k}.param"] = [(p.weight, p.bias) for p in pair]

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        taken = dict(state_dict)
        for k in range(len(self.weights)):
            found = taken.pop(f"{prefix}_all_weight_values.{k}.param", None)
            if found is None:
                rest[2].append(f"{prefix}_all_weight_values.{k}.param")
            else:
                first, second = found
                self.weights[k] = (PackedWeight(*first), PackedWeight(*second))
        super()._load_from_state_dict(taken, prefix, *rest)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The network that a float one with a configuration becomes."""
        if type(mod) is not cls._FLOAT:
            raise AssertionError(f"{cls.__name__}.from_float only works for {cls._FLOAT.__name__}, got {type(mod)}")
        return cls(mod, mod.qconfig)

    def _step(self, x: Tensor, y: Tensor, states: list[Tensor]) -> list[Tensor]:
        """The states after one step, from the products of the input and of the last output."""
        raise NotImplementedError

    def _direction(self, k: int, x: Tensor, states: list[Tensor], backwards: bool) -> tuple[Tensor, list[Tensor]]:
        ih, hh = self.weights[k]
        products = ih.linear_dynamic(x)  # (T, B, gates), all steps at once
        rows = []
        order = range(len(x) - 1, -1, -1) if backwards else range(len(x))
        for t in order:
            states = self._step(products[t], hh.linear_dynamic(states[0]), states)
            rows.append(states[0])
        return F.stack(rows[::-1] if backwards else rows), states

    def _run(self, x: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        own: Any = self
        sides = 1 + int(own.bidirectional)
        last: list[list[Tensor]] = []
        for layer in range(own.num_layers):
            outs = []
            for side in range(sides):
                k = layer * sides + side
                y, ends = self._direction(k, x, [s[k] for s in states], side == 1)
                outs.append(y)
                last.append(ends)
            x = outs[0] if sides == 1 else F.cat(outs, -1)
            if own.dropout and self.training and layer + 1 < own.num_layers:
                x = nn.functional.dropout(x, own.dropout, True)
        return x, [F.stack([ends[j] for ends in last]) for j in range(self._STATES)]

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        own: Any = self
        if isinstance(input, PackedSequence):
            return self._packed_sequence(input, hx)
        if isinstance(input, QuantizedTensor) or input.ndim not in (2, 3):
            raise RuntimeError(f"{self._get_name()}: takes numbers with 2 or 3 dimensions, got {input.dtype}.")
        alone = input.ndim == 2
        x = input.unsqueeze(1) if alone else input.transpose(0, 1) if own.batch_first else input
        given = None if hx is None else [hx] if isinstance(hx, Tensor) else list(hx)
        if given is None:
            shape = (len(self.weights), x.shape[1], own.hidden_size)
            given = [F.zeros(shape, dtype=x.dtype, device=x.device) for _ in range(self._STATES)]
        elif alone:
            given = [s.unsqueeze(1) for s in given]
        y, ends = self._run(x, given)
        if alone:
            y, ends = y.squeeze(1), [s.squeeze(1) for s in ends]
        elif own.batch_first:
            y = y.transpose(0, 1)
        return y, tuple(ends) if self._STATES > 1 else ends[0]

    def _packed_sequence(self, input: Any, hx: Any) -> tuple[Any, Any]:
        if len(set(input.batch_sizes.tolist())) != 1:
            raise NotImplementedError(f"{self._get_name()}: packed sequences must be of one length here; pad them.")
        x, _ = pad_packed_sequence(input)
        own: Any = self
        first, own.batch_first = own.batch_first, False
        try:
            y, ends = self.forward(x, hx)
        finally:
            own.batch_first = first
        return nn.utils.rnn.pack_padded_sequence(y, [len(x)] * x.shape[1], enforce_sorted=False), ends


class LSTM(_Network):
    """A long short-term memory with weights of 8 bits."""

    _FLOAT = nn.LSTM
    _STATES = 2

    def _step(self, x: Tensor, y: Tensor, states: list[Tensor]) -> list[Tensor]:
        return list(_lstm(x + y, states[1]))


class GRU(_Network):
    """Gated recurrent units with weights of 8 bits."""

    _FLOAT = nn.GRU
    _STATES = 1

    def _step(self, x: Tensor, y: Tensor, states: list[Tensor]) -> list[Tensor]:
        return [_gru(x, y, states[0])]


class _Cell(nn.Module):
    """One step of a recurrent network."""

    _FLOAT: ClassVar[Any]

    def __init__(self, mod: Any, qconfig: Any) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = mod.input_size, mod.hidden_size, mod.bias
        self.nonlinearity = getattr(mod, "nonlinearity", "tanh")
        self._ih = _packed(mod.weight_ih, mod.bias_ih, qconfig)
        self._hh = _packed(mod.weight_hh, mod.bias_hh, qconfig)

    def _get_name(self) -> str:
        return f"DynamicQuantized{type(self).__name__}"

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name, part in (("ih", self._ih), ("hh", self._hh)):
            destination[f"{prefix}_packed_weight_{name}"] = (part.weight, part.bias)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        taken = dict(state_dict)
        for name in ("ih", "hh"):
            found = taken.pop(f"{prefix}_packed_weight_{name}", None)
            if found is None:
                rest[2].append(f"{prefix}_packed_weight_{name}")
            else:
                setattr(self, f"_{name}", PackedWeight(*found))
        super()._load_from_state_dict(taken, prefix, *rest)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The cell that a float one with a configuration becomes."""
        if type(mod) is not cls._FLOAT:
            raise AssertionError(f"{cls.__name__}.from_float only works for {cls._FLOAT.__name__}, got {type(mod)}")
        return cls(mod, mod.qconfig)

    def _products(self, input: Tensor, h: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        state = F.zeros((*input.shape[:-1], self.hidden_size), dtype=input.dtype) if h is None else h
        return self._ih.linear_dynamic(input), self._hh.linear_dynamic(state), state


class LSTMCell(_Cell):
    """One step of a long short-term memory with weights of 8 bits."""

    _FLOAT = nn.LSTMCell

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        x, y, state = self._products(input, None if hx is None else hx[0])
        return _lstm(x + y, F.zeros_like(state) if hx is None else hx[1])


class GRUCell(_Cell):
    """One step of gated recurrent units with weights of 8 bits."""

    _FLOAT = nn.GRUCell

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        x, y, state = self._products(input, hx)
        return _gru(x, y, state)


class RNNCell(_Cell):
    """One step of a plain recurrent network with weights of 8 bits."""

    _FLOAT = nn.RNNCell

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        x, y, _ = self._products(input, hx)
        out: Tensor = (x + y).relu() if self.nonlinearity == "relu" else (x + y).tanh()
        return out
