"""One step of a recurrent network as cell layers. Knows no sequences."""

from __future__ import annotations

import math

import votive

from ...backends.common.recurrent import GATES as gates
from ...core import dtype as dt
from ...core.device import DeviceLike
from ...dispatch.state import state as dispatching
from ...ops.recurrent import run_cell
from ...tensor import Tensor
from .. import init
from ..factory import FactoryKwargs
from ..module import Module
from ..parameter import Parameter

State = tuple[Tensor, ...]
MODES = {"RNN_TANH": "tanh", "RNN_RELU": "relu", "LSTM": "lstm", "GRU": "gru"}
GATES = {name: gates[mode] for name, mode in MODES.items()}


class RNNCellBase(Module):
    """What the cells share: two weights, two biases, and the shapes of input and state.

    >>> votive.nn.RNNCellBase(3, 5, True, num_chunks=4).weight_ih.shape
    votive.Size([20, 3])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
    ) -> None:
        super().__init__()
        made = FactoryKwargs(device=device, dtype=dtype)
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(votive.empty((rows, input_size), **made))
        self.weight_hh = Parameter(votive.empty((rows, hidden_size), **made))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(votive.empty(rows, **made)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def _run(self, mode: str, input: Tensor, state: State | None, names: tuple[str, ...]) -> State:
        """One step on a batch or on a single vector; `names` say which state was wrong."""
        me = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{me}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        if state is not None:
            for name, s in zip(names, state, strict=True):
                if s.dim() not in (1, 2):
                    raise ValueError(f"{me}: Expected {name} to be 1D or 2D, got {s.dim()}D instead")
        batched = input.dim() == 2
        x = input if batched else input.unsqueeze(0)
        if state is not None and not batched:
            state = tuple(s.unsqueeze(0) for s in state)
        self._check(x, state or ())
        weights = [self.weight_ih, self.weight_hh]
        if self.bias:
            weights += [self.bias_ih, self.bias_hh]
        after = run_cell(mode, x, state, weights, any(o.opens_fused for o in dispatching.observers))
        return after if batched else tuple(s.squeeze(0) for s in after)

    def _check(self, x: Tensor, state: State) -> None:
        if x.shape[1] != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {x.shape[1]} expected {self.input_size}")
        for i, s in enumerate(state):
            if s.shape[0] != x.shape[0]:
                raise RuntimeError(f"Input batch size {x.shape[0]} doesn't match hidden{i} batch size {s.shape[0]}")
            if s.shape[1] != self.hidden_size:
                raise RuntimeError(
                    f"hidden{i} has inconsistent hidden_size: got {s.shape[1]}, expected {self.hidden_size}"
                )


class RNNCell(RNNCellBase):
    """One Elman step, `h' = tanh(W x + b + U h + c)`.

    >>> votive.nn.RNNCell(10, 20)(votive.ones(3, 10)).shape
    votive.Size([3, 20])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._run(self.nonlinearity, input, None if hx is None else (hx,), ("hidden",))[0]


class LSTMCell(RNNCellBase):
    """One step of long short-term memory; gives the new `(h, c)`.

    >>> h, c = votive.nn.LSTMCell(10, 20)(votive.ones(3, 10))
    >>> h.shape, c.shape
    (votive.Size([3, 20]), votive.Size([3, 20]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=4, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        h, c = self._run("lstm", input, hx, ("hx[0]", "hx[1]"))
        return h, c


class GRUCell(RNNCellBase):
    """One step of a gated recurrent unit.

    >>> votive.nn.GRUCell(10, 20)(votive.ones(3, 10)).shape
    votive.Size([3, 20])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._run("gru", input, None if hx is None else (hx,), ("hidden",))[0]
