"""torch's functions of recurrent networks and cells: over padded or packed batches, with the weights as arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.errors import DtypeError, ShapeError, fail
from .recurrent import run_cell, run_network
from .registry import composite
from .schema import is_tensor

if TYPE_CHECKING:
    from .types import Sequence, Tensor

_PADDED = ("input", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first")
_PACKED = ("data", "batch_sizes", "hx", *_PADDED[2:-1])


def _arguments(op: str, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name; a packed batch is known by what comes before the weights: three things, not two."""
    lists = [k for k, a in enumerate(args) if isinstance(a, (list, tuple))]
    usual = 1 if op == "lstm" else 2  # where the first list is: the states of an LSTM, else the weights
    packed = "data" in named or "batch_sizes" in named or (bool(lists) and lists[0] > usual)
    names = _PACKED if packed else _PADDED
    given = dict(zip(names, args, strict=False)) | named
    missing = [n for n in names if n not in given]
    unknown = [n for n in given if n not in names]
    if missing or unknown or len(args) > len(names):
        what = f"missing {missing}" if missing else f"not known: {unknown or args[len(names) :]}"
        raise TypeError(f"{op}: takes ({', '.join(_PADDED)}) or ({', '.join(_PACKED)}); {what}.")
    return given


def _network(op: str, mode: str, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    given = _arguments(op, args, named)
    packed = "data" in given
    x = given["data"] if packed else given["input"]
    states = tuple(given["hx"]) if mode == "lstm" else (given["hx"],)
    if mode == "lstm" and len(states) != 2:
        fail(RuntimeError, op, f"lstm expects two hidden states, got {len(states)}.")
    sizes = None
    if packed:
        sizes = _row_counts(op, given["batch_sizes"])
    elif x.ndim != 3:
        fail(ShapeError, op, f"input must have 3 dimensions, got {x.ndim}.")
    h, c = (*states, None)[:2]
    first = not packed and bool(given["batch_first"])
    out, *ends = run_network(
        x.transpose(0, 1) if first else x,
        h,
        c,
        list(given["params"]),
        mode,
        sizes,
        int(given["num_layers"]),
        bool(given["bidirectional"]),
        bool(given["has_biases"]),
        float(given["dropout"]) if given["train"] else 0.0,
    )
    return (out.transpose(0, 1) if first else out), *ends


def _row_counts(op: str, batch_sizes: Tensor) -> tuple[int, ...]:
    if not is_tensor(batch_sizes) or batch_sizes.ndim != 1 or batch_sizes.dtype.is_floating_point:
        fail(DtypeError, op, f"batch_sizes must be a vector of integers, got {batch_sizes}.")
    return tuple(batch_sizes.tolist())


@composite(method=False)
def lstm(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """Long short-term memory over a batch: outputs of all steps, last `h` and last `c`.

    Takes `(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)`, or of a packed
    batch `(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)`.

    >>> net, x, zeros = votive.nn.LSTM(3, 4), votive.ones(5, 2, 3), votive.zeros(1, 2, 4)
    >>> out, h, c = votive.lstm(x, (zeros, zeros), list(net.parameters()), True, 1, 0.0, False, False, False)
    >>> out.shape, votive.equal(out, net(x)[0])
    (votive.Size([5, 2, 4]), True)
    """
    return _network("lstm", "lstm", args, kwargs)


@composite(method=False)
def gru(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """Gated recurrent units over a batch: outputs of all steps and the last `h`; arguments as for `lstm`.

    >>> net, x = votive.nn.GRU(3, 4), votive.ones(5, 2, 3)
    >>> out, h = votive.gru(x, votive.zeros(1, 2, 4), list(net.parameters()), True, 1, 0.0, False, False, False)
    >>> out.shape, h.shape
    (votive.Size([5, 2, 4]), votive.Size([1, 2, 4]))
    """
    return _network("gru", "gru", args, kwargs)


@composite(method=False)
def rnn_tanh(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """An Elman network with tanh over a batch: outputs of all steps and the last `h`; arguments as for `lstm`.

    >>> net, x = votive.nn.RNN(3, 4), votive.ones(5, 2, 3)
    >>> out, h = votive.rnn_tanh(x, votive.zeros(1, 2, 4), list(net.parameters()), True, 1, 0.0, False, False, False)
    >>> out.shape, h.shape
    (votive.Size([5, 2, 4]), votive.Size([1, 2, 4]))
    """
    return _network("rnn_tanh", "tanh", args, kwargs)


@composite(method=False)
def rnn_relu(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """An Elman network with relu over a batch: outputs of all steps and the last `h`; arguments as for `lstm`.

    >>> net, x = votive.nn.RNN(3, 4, nonlinearity="relu"), votive.ones(5, 2, 3)
    >>> out, h = votive.rnn_relu(x, votive.zeros(1, 2, 4), list(net.parameters()), True, 1, 0.0, False, False, False)
    >>> out.shape, h.shape
    (votive.Size([5, 2, 4]), votive.Size([1, 2, 4]))
    """
    return _network("rnn_relu", "relu", args, kwargs)


def _cell(
    mode: str, x: Tensor, state: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
) -> tuple[Any, ...]:
    op = {"tanh": "rnn_tanh_cell", "relu": "rnn_relu_cell"}.get(mode, f"{mode}_cell")
    if x.ndim != 2 or any(s.ndim != 2 for s in state):
        fail(ShapeError, op, f"input and states must have 2 dimensions, got {x.ndim} and {[s.ndim for s in state]}.")
    if b_ih is None and b_hh is None:
        return run_cell(mode, x, state, [w_ih, w_hh])
    zeros = (w_ih if b_ih is None else b_ih).new_zeros(w_ih.shape[0])
    return run_cell(mode, x, state, [w_ih, w_hh, zeros if b_ih is None else b_ih, zeros if b_hh is None else b_hh])


@composite(method=False, autocast={"cuda": "lower"})
def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Any, ...]:
    """One step of long short-term memory: the new `(h, c)`.

    >>> h, c = votive.lstm_cell(votive.ones(2, 3), [votive.zeros(2, 1)] * 2, votive.ones(4, 3), votive.ones(4, 1))
    >>> h.shape, c.shape
    (votive.Size([2, 1]), votive.Size([2, 1]))
    """
    if is_tensor(hx) or len(hx) != 2:
        fail(RuntimeError, "lstm_cell", "lstm_cell expects two hidden states")
    return _cell("lstm", input, hx, w_ih, w_hh, b_ih, b_hh)


@composite(method=False, autocast={"cuda": "lower"})
def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of a gated recurrent unit: the new `h`.

    >>> votive.gru_cell(votive.ones(2, 3), votive.zeros(2, 1), votive.ones(3, 3), votive.ones(3, 1)).shape
    votive.Size([2, 1])
    """
    made: Tensor = _cell("gru", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]
    return made


@composite(method=False, autocast={"cuda": "lower"})
def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One Elman step, `tanh(W x + b + U h + c)`.

    >>> votive.rnn_tanh_cell(votive.ones(1, 2), votive.zeros(1, 1), votive.ones(1, 2), votive.ones(1, 1))
    tensor([[0.9640]])
    """
    made: Tensor = _cell("tanh", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]
    return made


@composite(method=False, autocast={"cuda": "lower"})
def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One Elman step, `relu(W x + b + U h + c)`.

    >>> votive.rnn_relu_cell(votive.ones(1, 2), votive.zeros(1, 1), votive.ones(1, 2), votive.ones(1, 1))
    tensor([[2.]])
    """
    made: Tensor = _cell("relu", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]
    return made
