"""Recurrent layers agree with torch in values, last states, all gradients, and refusals."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import votive
from votive import nn
from votive.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

NETS: list[tuple[str, dict[str, Any]]] = [
    ("RNN", {}),
    ("RNN", {"nonlinearity": "relu", "num_layers": 2, "bias": False}),
    ("RNN", {"bidirectional": True, "batch_first": True}),
    ("LSTM", {}),
    ("LSTM", {"num_layers": 2, "bidirectional": True, "batch_first": True}),
    ("LSTM", {"num_layers": 2, "proj_size": 2, "bidirectional": True}),
    ("LSTM", {"bias": False, "proj_size": 3}),
    ("GRU", {}),
    ("GRU", {"num_layers": 3, "bidirectional": True}),
    ("GRU", {"bias": False, "batch_first": True}),
]
CELLS: list[tuple[str, dict[str, Any]]] = [
    ("RNNCell", {}),
    ("RNNCell", {"nonlinearity": "relu", "bias": False}),
    ("LSTMCell", {}),
    ("LSTMCell", {"bias": False}),
    ("GRUCell", {}),
    ("GRUCell", {"bias": False}),
]


def label(net: tuple[str, dict[str, Any]]) -> str:
    return "-".join([net[0], *(f"{k}={v}" for k, v in net[1].items())])


def pair(name: str, options: dict[str, Any]) -> tuple[Any, Any]:
    """Our layer and torch's, with the same weights."""
    torch = pytest.importorskip("torch")
    theirs = getattr(torch.nn, name)(3, 4, **options, dtype=torch.float64)
    ours = getattr(nn, name)(3, 4, **options, dtype=votive.float64)
    assert repr(ours) == repr(theirs)
    state = {k: votive.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()}
    assert list(ours.state_dict()) == list(state)
    ours.load_state_dict(state)
    return ours, theirs


def close(got: Any, want: Any) -> None:
    assert tuple(got.shape) == tuple(want.shape)
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-9, atol=1e-12)


def compare_gradients(ours: Any, theirs: Any, results: Any, inputs: Any) -> None:
    """Weigh all results with the same random numbers, run both backward, compare."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    total: list[Any] = [0.0, 0.0]
    for got, want in results:
        close(got, want)
        weight = rng.normal(size=tuple(want.shape))
        total[0] = total[0] + (got * votive.from_numpy(weight.copy())).sum()
        total[1] = total[1] + (want * torch.from_numpy(weight)).sum()
    total[0].backward()
    total[1].backward()
    for got, want in inputs:
        close(got.grad, want.grad)
    for (key, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        assert p.grad is not None, key
        close(p.grad, q.grad)


def twins(rng: np.random.Generator, *shape: int) -> tuple[Any, Any]:
    torch = pytest.importorskip("torch")
    data = rng.normal(size=shape)
    return (votive.from_numpy(data.copy()).requires_grad_(), torch.from_numpy(data.copy()).requires_grad_())


def states(rng: np.random.Generator, net: Any, *samples: int) -> list[tuple[Any, Any]]:
    layers = net.num_layers * (2 if net.bidirectional else 1)
    widths = [net.proj_size or net.hidden_size]
    if net.mode == "LSTM":
        widths.append(net.hidden_size)
    return [twins(rng, layers, *samples, w) for w in widths]


def as_hidden(given: list[tuple[Any, Any]], side: int) -> Any:
    parts = tuple(s[side] for s in given)
    return parts if len(parts) == 2 else parts[0]


def flat(result: Any) -> list[Any]:
    out, h = result
    return [out, *h] if isinstance(h, tuple) else [out, h]


@pytest.mark.parity
@pytest.mark.parametrize("initial", [False, True], ids=["zeros", "given"])
@pytest.mark.parametrize("samples", [(), (2,)], ids=["unbatched", "batched"])
@pytest.mark.parametrize("net", NETS, ids=label)
def test_a_network_agrees_with_torch(net: Any, samples: tuple[int, ...], initial: bool) -> None:
    ours, theirs = pair(*net)
    rng = np.random.default_rng(0)
    shape = (*samples, 5, 3) if ours.batch_first else (5, *samples, 3)
    x = twins(rng, *shape)
    given = states(rng, ours, *samples) if initial else []
    more = [(as_hidden(given, 0),), (as_hidden(given, 1),)] if initial else [(), ()]
    got, want = ours(x[0], *more[0]), theirs(x[1], *more[1])
    assert isinstance(got[1], tuple) == isinstance(want[1], tuple)
    compare_gradients(ours, theirs, zip(flat(got), flat(want), strict=True), [x, *given])


@pytest.mark.parity
@pytest.mark.parametrize("initial", [False, True], ids=["zeros", "given"])
@pytest.mark.parametrize("lengths", [[4, 3, 3, 1], [2, 4, 1, 3]], ids=["sorted", "unsorted"])
@pytest.mark.parametrize("net", NETS, ids=label)
def test_a_packed_batch_agrees_with_torch(net: Any, lengths: list[int], initial: bool) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = pair(*net)
    rng = np.random.default_rng(0)
    x = twins(rng, 4, 4, 3)
    is_sorted = lengths == sorted(lengths, reverse=True)
    packed = pack_padded_sequence(x[0], lengths, True, is_sorted)
    theirs_packed = torch.nn.utils.rnn.pack_padded_sequence(x[1], lengths, True, is_sorted)
    given = states(rng, ours, 4) if initial else []
    more = [(as_hidden(given, 0),), (as_hidden(given, 1),)] if initial else [(), ()]
    got, want = ours(packed, *more[0]), theirs(theirs_packed, *more[1])
    padded, sizes = pad_packed_sequence(got[0])
    theirs_padded, theirs_sizes = torch.nn.utils.rnn.pad_packed_sequence(want[0])
    assert sizes.tolist() == theirs_sizes.tolist() == lengths
    results = [(padded, theirs_padded), *zip(flat(got)[1:], flat(want)[1:], strict=True)]
    compare_gradients(ours, theirs, results, [x, *given])


@pytest.mark.parity
@pytest.mark.parametrize("initial", [False, True], ids=["zeros", "given"])
@pytest.mark.parametrize("samples", [(), (2,)], ids=["unbatched", "batched"])
@pytest.mark.parametrize("cell", CELLS, ids=label)
def test_a_cell_agrees_with_torch(cell: Any, samples: tuple[int, ...], initial: bool) -> None:
    ours, theirs = pair(*cell)
    rng = np.random.default_rng(0)
    x = twins(rng, *samples, 3)
    lstm = cell[0] == "LSTMCell"
    given = [twins(rng, *samples, 4) for _ in range(1 + lstm)] if initial else []
    more = [(as_hidden(given, 0),), (as_hidden(given, 1),)] if initial else [(), ()]
    got, want = ours(x[0], *more[0]), theirs(x[1], *more[1])
    results = list(zip(got, want, strict=True)) if lstm else [(got, want)]
    compare_gradients(ours, theirs, results, [x, *given])


REFUSALS: list[tuple[str, Any]] = [
    ("no features", lambda t, nn: nn.LSTM(0, 4)),
    ("no units", lambda t, nn: nn.GRU(3, 0)),
    ("float size", lambda t, nn: nn.GRU(3.0, 4)),
    ("no layers", lambda t, nn: nn.RNN(3, 4, 0)),
    ("dropout past one", lambda t, nn: nn.RNN(3, 4, 2, dropout=2.0)),
    ("bias as number", lambda t, nn: nn.LSTM(3, 4, 1, 1)),
    ("projection as wide", lambda t, nn: nn.LSTM(3, 4, proj_size=4)),
    ("projection of a GRU", lambda t, nn: nn.GRU(3, 4, proj_size=2)),
    ("unknown mode", lambda t, nn: nn.RNNBase("TREE", 3, 4)),
    ("unknown nonlinearity", lambda t, nn: nn.RNN(3, 4, nonlinearity="gelu")),
    ("input of rank 1", lambda t, nn: nn.RNN(3, 4)(t.ones(3))),
    ("other features", lambda t, nn: nn.LSTM(3, 4)(t.ones(5, 2, 2))),
    ("other dtype", lambda t, nn: nn.LSTM(3, 4)(t.ones(5, 2, 3, dtype=t.float64))),
    ("no steps", lambda t, nn: nn.LSTM(3, 4)(t.ones(0, 2, 3))),
    ("state unbatched", lambda t, nn: nn.GRU(3, 4)(t.ones(5, 2, 3), t.ones(1, 4))),
    ("state batched", lambda t, nn: nn.LSTM(3, 4)(t.ones(5, 3), (t.ones(1, 1, 4),) * 2)),
    ("state of other shape", lambda t, nn: nn.GRU(3, 4)(t.ones(5, 2, 3), t.ones(1, 3, 4))),
    ("cell of other shape", lambda t, nn: nn.LSTM(3, 4)(t.ones(5, 2, 3), (t.ones(1, 2, 4), t.ones(1, 2, 3)))),
    ("cell input of rank 3", lambda t, nn: nn.GRUCell(3, 4)(t.ones(1, 1, 3))),
    ("cell state of rank 3", lambda t, nn: nn.LSTMCell(3, 4)(t.ones(1, 3), (t.ones(1, 1, 4),) * 2)),
    ("cell features", lambda t, nn: nn.RNNCell(3, 4)(t.ones(1, 2))),
    ("cell samples", lambda t, nn: nn.RNNCell(3, 4)(t.ones(2, 3), t.ones(3, 4))),
    ("cell units", lambda t, nn: nn.LSTMCell(3, 4)(t.ones(2, 3), (t.ones(2, 4), t.ones(2, 5)))),
    ("cell nonlinearity", lambda t, nn: nn.RNNCell(3, 4, nonlinearity="gelu")(t.ones(1, 3))),
]


@pytest.mark.parity
@pytest.mark.parametrize("run", [r[1] for r in REFUSALS], ids=[r[0] for r in REFUSALS])
def test_what_torch_refuses_is_refused_in_its_words(run: Any) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(Exception) as theirs:
        run(torch, torch.nn)
    with pytest.raises(theirs.type) as ours:
        run(votive, nn)
    assert str(theirs.value).replace("torch.", "votive.") in str(ours.value)


def test_dropout_acts_between_layers_in_training_only() -> None:
    votive.manual_seed(0)
    net = nn.GRU(3, 4, 2, dropout=1.0)
    x = votive.ones(5, 2, 3)
    single = nn.GRU(4, 4)
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    single.load_state_dict({f"{n}_l0": net.state_dict()[f"{n}_l1"] for n in names})
    blank, _ = single(votive.zeros(5, 2, 4))
    np.testing.assert_allclose(net(x)[0].detach().numpy(), blank.detach().numpy(), rtol=1e-6)
    assert not np.allclose(net.eval()(x)[0].detach().numpy(), blank.detach().numpy())


def test_dropout_of_one_layer_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="num_layers greater than 1") as seen:
        nn.LSTM(3, 4, dropout=0.5)
    assert seen[0].filename == __file__


def test_a_replaced_weight_is_the_one_used() -> None:
    net = nn.RNN(2, 2)
    net.weight_ih_l0 = nn.Parameter(votive.zeros(2, 2))
    net.flatten_parameters()
    assert net.all_weights[0][0] is net.weight_ih_l0
    x, y = votive.ones(3, 1, 2), votive.zeros(3, 1, 2)
    assert votive.equal(net(x)[0], net(y)[0])
    twin = copy.deepcopy(net)
    assert votive.equal(twin(x)[0], net(x)[0])
    assert twin.all_weights[0][0] is twin.weight_ih_l0 is not net.weight_ih_l0


def test_weights_begin_within_one_over_the_root_of_the_units() -> None:
    votive.manual_seed(0)
    every = votive.cat([w.flatten() for w in nn.LSTM(30, 25, 2).parameters()])
    assert 0.19 < every.abs().max().item() <= 0.2
    assert abs(every.mean().item()) < 0.01


@pytest.mark.parity
@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell"])
def test_autocast_gives_the_dtypes_of_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    kinds = []
    for m in (votive, torch):
        with m.autocast("cpu", dtype=m.bfloat16):
            made = getattr(m.nn, name)(3, 4)(m.ones(2, 3) if "Cell" in name else m.ones(5, 2, 3))
        flat = [
            t
            for part in (made if isinstance(made, tuple) else (made,))
            for t in (part if isinstance(part, tuple) else (part,))
        ]
        kinds.append([str(t.dtype).split(".")[1] for t in flat])
    assert kinds[0] == kinds[1]


@pytest.mark.parity
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("function", "net"), [("lstm", NETS[3]), ("gru", NETS[7]), ("rnn_tanh", NETS[0]), ("rnn_relu", NETS[1])]
)
def test_functions_agree_with_torch(function: str, net: Any, packed: bool) -> None:
    torch = pytest.importorskip("torch")
    name, options = net
    _, theirs = pair(name, {**options, "num_layers": 2, "bidirectional": True})
    rng = np.random.default_rng(0)
    given = [rng.normal(size=(4, 3, 4)) for _ in range(1 + (function == "lstm"))]
    results = []
    for m in (votive, torch):
        weights = [m.from_numpy(w.detach().numpy().copy()) for w in theirs.parameters()]
        states = [m.from_numpy(s.copy()) for s in given]
        hx = tuple(states) if function == "lstm" else states[0]
        more = (weights, theirs.bias, 2, 0.0, False, True)
        if packed:
            made = getattr(m, function)(m.ones(6, 3, dtype=m.float64), m.tensor([3, 2, 1]), hx, *more)
        else:
            made = getattr(m, function)(m.ones(3, 5, 3, dtype=m.float64), hx, *more, batch_first=True)
        results.append(made)
    assert len(results[0]) == len(results[1])
    for got, want in zip(*results, strict=True):
        close(got, want)


@pytest.mark.parity
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("function", ["lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"])
def test_functions_of_cells_agree_with_torch(function: str, bias: bool) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    n = {"lstm_cell": 16, "gru_cell": 12}.get(function, 4)
    shapes = [(2, 3), (2, 4), (2, 4), (n, 3), (n, 4), (n,), (n,)]
    arrays = [rng.normal(size=s) for s in shapes]
    results = []
    for m in (votive, torch):
        x, h, c, *weights = (m.from_numpy(a.copy()) for a in arrays)
        made = getattr(m, function)(x, (h, c) if n == 16 else h, *weights[: 4 if bias else 2])
        results.append(made if isinstance(made, tuple) else (made,))
    for got, want in zip(*results, strict=True):
        close(got, want)


def test_wrong_arguments_of_functions_are_named() -> None:
    net, x, zeros = nn.LSTM(3, 4), votive.ones(5, 2, 3), votive.zeros(1, 2, 4)
    weights = list(net.parameters())
    with pytest.raises(RuntimeError, match="two hidden states"):
        votive.lstm(x, (zeros,), weights, True, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="3 weights"):
        votive.lstm(x, (zeros, zeros), weights[:3], True, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match=r"weight of layer 0 must have shape \(16, 2\)"):
        votive.lstm(x[..., :2], (zeros, zeros), weights, True, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match=r"h must have shape \(1, 2, 4\)"):
        votive.lstm(x, (zeros[:, :1], zeros), weights, True, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="never grow"):
        votive.lstm(x[:, 0], votive.tensor([2, 3]), (zeros, zeros), weights, True, 1, 0.0, False, False)
    with pytest.raises(TypeError, match="missing"):
        votive.gru(x, zeros, weights)
