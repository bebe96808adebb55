"""Recurrent networks over sequences: RNN, LSTM, GRU. Weights and checks; the operator runs them."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import votive

from ...core import dtype as dt
from ...core.device import DeviceLike
from ...dispatch.state import state as dispatching
from ...ops.recurrent import run_network
from ...tensor import Tensor
from .. import init
from ..module import Module
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .recurrent_cells import GATES, MODES, State

Sequences = Tensor | PackedSequence


class RNNBase(Module):
    """What RNN, LSTM and GRU share: weights per layer and direction, checks, and the run.

    >>> [tuple(w.shape) for w in votive.nn.RNNBase("GRU", 2, 5).all_weights[0]]
    [(15, 2), (15, 5), (15,), (15,)]
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
    ) -> None:
        super().__init__()
        _check_options(input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        if mode not in GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        rows, out = GATES[mode] * hidden_size, proj_size or hidden_size
        directions = ("", "_reverse") if bidirectional else ("",)
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            features = out * len(directions) if layer else input_size
            for direction in directions:
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, features), "weight_hh": (rows, out)}
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                named = {f"{k}_l{layer}{direction}": s for k, s in shapes.items()}
                for name, shape in named.items():
                    empty = votive.empty(shape, device=device, dtype=dtype)
                    self.register_parameter(name, Parameter(empty))
                self._all_weights.append(list(named))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Nothing: the weights are used where they lie."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The weights of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Parameter]:
        return [w for weights in self.all_weights for w in weights]

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        usual = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
        }
        for name, value in usual.items():
            if getattr(self, name) != value:
                text += f", {name}={getattr(self, name)}"
        return text

    # --- checks -------------------------------------------------------------------------------

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Refuse an input of the wrong dtype, rank or number of features."""
        kind = self._flat_weights[0].dtype
        if input.dtype != kind:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({kind}). "
                f"Convert input: input.to({kind}), or convert model: model.to({input.dtype})"
            )
        rank = 3 if batch_sizes is None else 2
        if input.dim() != rank:
            raise RuntimeError(f"input must have {rank} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def _samples(self, input: Tensor, batch_sizes: Tensor | None) -> int:
        if batch_sizes is not None:
            return int(batch_sizes[0])
        return int(input.size(0 if self.batch_first else 1))

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of the state `h`."""
        layers = self.num_layers * (2 if self.bidirectional else 1)
        return layers, self._samples(input, batch_sizes), self.proj_size or self.hidden_size

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Refuse a state of another shape."""
        if tuple(hx.shape) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Refuse an input or a state of the wrong shape."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Tensor, permutation: Tensor | None) -> Tensor:
        """The state with its samples in another order."""
        return hx if permutation is None else hx.index_select(1, permutation)

    # --- run ----------------------------------------------------------------------------------

    def _layers(self, x: Tensor, sizes: tuple[int, ...] | None, states: State | None) -> tuple[Tensor, ...]:
        """All layers over (T, B, features), or over packed rows whose steps have `sizes` rows."""
        if x.shape[0] == 0:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        h, c = (None, None) if states is None else (*states, None)[:2]
        return run_network(
            x,
            h,
            c,
            self._flat_weights,
            MODES[self.mode],
            sizes,
            self.num_layers,
            self.bidirectional,
            self.bias,
            self.dropout if self.training else 0.0,
            any(o.opens_fused for o in dispatching.observers),
        )

    def _check_rank(self, input: Tensor, hx: State | None) -> bool:
        """Whether the input is a batch; the state must then be one, and else not."""
        if input.dim() not in (2, 3):
            tensor = " tensor" if isinstance(self, RNN) else ""
            raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {input.dim()}D{tensor} instead")
        rank = input.dim()
        if hx is not None and any(h.dim() != rank for h in hx):
            kind = "batched" if rank == 3 else "unbatched"
            names = "hx" if len(hx) == 1 else "hx and cx"
            got = f"{hx[0].dim()}-D tensor" if len(hx) == 1 else (f"({hx[0].dim()}-D, {hx[1].dim()}-D) tensors")
            raise RuntimeError(f"For {kind} {rank}-D input, {names} should also be {rank}-D but got {got}")
        return rank == 3

    def _forward(self, input: Sequences, hx: State | None) -> tuple[Any, State]:
        """Output and last state of a padded, packed or single sequence."""
        if isinstance(input, PackedSequence):
            x, sizes, order, back = input
            out, *ends = self._layers(x, tuple(sizes.tolist()), self._states(x, sizes, order, hx))
            return PackedSequence(out, sizes, order, back), tuple(self.permute_hidden(h, back) for h in ends)
        x, batched = input, self._check_rank(input, hx)
        if not batched:
            x = x.unsqueeze(0 if self.batch_first else 1)
            hx = None if hx is None else tuple(h.unsqueeze(1) for h in hx)
        states = self._states(x, None, None, hx)
        out, *ends = self._layers(x.transpose(0, 1) if self.batch_first else x, None, states)
        out = out.transpose(0, 1) if self.batch_first else out
        if batched:
            return out, tuple(ends)
        return out.squeeze(0 if self.batch_first else 1), tuple(h.squeeze(1) for h in ends)

    def _states(self, x: Tensor, sizes: Tensor | None, order: Tensor | None, given: State | None) -> State | None:
        """The states to begin with, in the order of the rows; None for zeros."""
        if given is None:
            self.check_input(x, sizes)
            return None
        self.check_forward_args(x, given if len(given) > 1 else given[0], sizes)
        return tuple(self.permute_hidden(h, order) for h in given)


def _check_options(
    input_size: int,
    hidden_size: int,
    num_layers: int,
    bias: object,
    batch_first: object,
    dropout: float,
    proj_size: int,
) -> None:
    number = isinstance(dropout, numbers.Number) and not isinstance(dropout, bool)
    if not number or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout "
            f"expects num_layers greater than 1, but got dropout={dropout} and "
            f"num_layers={num_layers}",
            stacklevel=4,
        )
    for name, value in (("bias", bias), ("batch_first", batch_first)):
        if not isinstance(value, bool):
            raise TypeError(f"{name} should be of type bool, got: {type(value).__name__}")
    for name, value in (("input_size", input_size), ("hidden_size", hidden_size)):
        if not isinstance(value, int):
            raise TypeError(f"{name} should be of type int, got: {type(value).__name__}")
        if value <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


def _no_projection(options: dict[str, Any]) -> None:
    if "proj_size" in options:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
    for name in options:
        raise TypeError(f"got an unexpected keyword argument {name!r}")


class RNN(RNNBase):
    """Elman network, `h_t = tanh(W x_t + b + U h_{t-1} + c)` in each layer.

    >>> output, h = votive.nn.RNN(10, 20, 2)(votive.ones(5, 3, 10))
    >>> output.shape, h.shape
    (votive.Size([5, 3, 20]), votive.Size([2, 3, 20]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
        **kwargs: Any,
    ) -> None:
        _no_projection(kwargs)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        self.nonlinearity = nonlinearity
        sizes = (input_size, hidden_size, num_layers)
        super().__init__(
            f"RNN_{nonlinearity.upper()}", *sizes, bias, batch_first, dropout, bidirectional, device=device, dtype=dtype
        )

    def forward(self, input: Sequences, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        output, (h,) = self._forward(input, None if hx is None else (hx,))
        return output, h


class LSTM(RNNBase):
    """Long short-term memory; gives the output of each step and the last `(h, c)`.

    >>> output, (h, c) = votive.nn.LSTM(10, 20, 2)(votive.ones(5, 3, 10))
    >>> output.shape, h.shape, c.shape
    (votive.Size([5, 3, 20]), votive.Size([2, 3, 20]), votive.Size([2, 3, 20]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
    ) -> None:
        sizes = (input_size, hidden_size, num_layers)
        super().__init__("LSTM", *sizes, bias, batch_first, dropout, bidirectional, proj_size, device, dtype)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of the state `c`, which is not projected."""
        layers, samples, _ = self.get_expected_hidden_size(input, batch_sizes)
        return layers, samples, self.hidden_size

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Refuse an input or a state of the wrong shape."""
        self.check_input(input, batch_sizes)
        wanted = (self.get_expected_hidden_size(input, batch_sizes), self.get_expected_cell_size(input, batch_sizes))
        for i, (state, shape) in enumerate(zip(hidden, wanted, strict=True)):
            self.check_hidden_size(state, shape, f"Expected hidden[{i}] size {{}}, got {{}}")

    def forward(self, input: Sequences, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Any, tuple[Tensor, Tensor]]:
        output, (h, c) = self._forward(input, hx)
        return output, (h, c)


class GRU(RNNBase):
    """Gated recurrent units.

    >>> output, h = votive.nn.GRU(10, 20, bidirectional=True)(votive.ones(5, 3, 10))
    >>> output.shape, h.shape
    (votive.Size([5, 3, 40]), votive.Size([2, 3, 20]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
        **kwargs: Any,
    ) -> None:
        _no_projection(kwargs)
        sizes = (input_size, hidden_size, num_layers)
        super().__init__("GRU", *sizes, bias, batch_first, dropout, bidirectional, device=device, dtype=dtype)

    def forward(self, input: Sequences, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        output, (h,) = self._forward(input, None if hx is None else (hx,))
        return output, h
