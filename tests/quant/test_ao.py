"""Models rewritten for 8 bits: scales and codes are torch's, results within a step; files, glass, what is refused."""

from __future__ import annotations

import copy
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive import glass, nn
from votive.ao import quantization as Q

Pair = tuple[Any, Any]


def twins(make: Any) -> Pair:
    """The same model of torch and of votive, with the same values."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    a, b = make(torch), make(votive)
    b.load_state_dict({k: votive.from_numpy(v.numpy().copy()) for k, v in a.state_dict().items()})
    return a, b


def net(m: Any) -> Any:
    q, f = m.ao.quantization, m.ao.nn.quantized

    class Net(m.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.quant, self.dequant, self.ff = q.QuantStub(), q.DeQuantStub(), f.FloatFunctional()
            self.conv, self.bn, self.relu = m.nn.Conv2d(3, 8, 3, padding=1), m.nn.BatchNorm2d(8), m.nn.ReLU()
            self.conv2, self.relu2 = m.nn.Conv2d(8, 8, 3, stride=2, groups=2), m.nn.ReLU()
            self.pool, self.fc = m.nn.MaxPool2d(2), m.nn.Linear(72, 10)

        def forward(self, x: Any) -> Any:
            x = self.relu2(self.conv2(self.relu(self.bn(self.conv(self.quant(x))))))
            x = self.pool(self.ff.add(x, x))
            return self.dequant(self.fc(m.flatten(x, 1)))

    return Net()


FUSED = [["conv", "bn", "relu"], ["conv2", "relu2"]]


def same_state(a: Any, b: Any) -> None:
    """Keys, scales, zeros and codes of two converted models."""
    mine = b.state_dict()
    assert set(a.state_dict()) == set(mine)
    for key, value in a.state_dict().items():
        if key.endswith("scale"):
            np.testing.assert_allclose(mine[key].numpy(), value.numpy(), rtol=1e-6, err_msg=key)
        elif key.endswith("zero_point"):
            np.testing.assert_array_equal(mine[key].numpy(), value.numpy(), err_msg=key)
        elif key.endswith(("_packed_params._packed_params", "weight")):
            w, v = (x[0] if isinstance(x, tuple) else x for x in (value, mine[key]))
            np.testing.assert_array_equal(w.int_repr().numpy(), v.int_repr().numpy(), err_msg=key)


def inputs(*shape: int, count: int = 4) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [(rng.standard_normal(shape) * (i + 1)).astype("f4") for i in range(count)]


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["x86", "qnnpack"])
def test_static_models_have_the_scales_and_results_of_torch(backend: str) -> None:
    torch = pytest.importorskip("torch")
    made = []
    for m, model in zip((torch, votive), twins(net), strict=True):
        q = m.ao.quantization
        fused = q.fuse_modules(model.eval(), FUSED)
        fused.qconfig = q.get_default_qconfig(backend)
        ready = q.prepare(fused)
        for x in inputs(4, 3, 14, 14):
            ready(m.from_numpy(x))
        made.append(q.convert(ready))
    a, b = made
    same_state(a, b)
    x = inputs(4, 3, 14, 14)[0]
    y, z = a(torch.from_numpy(x)).numpy(), b(votive.from_numpy(x)).numpy()
    assert np.abs(y - z).max() <= 1.001 * a.fc.scale
    assert [str(v) for v in a.fc.__dict__["_modules"]] == [str(v) for v in b.fc.__dict__["_modules"]]


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
def test_models_that_train_with_rounding_take_the_steps_of_torch() -> None:
    torch = pytest.importorskip("torch")
    made, losses = [], []
    for m, model in zip((torch, votive), twins(net), strict=True):
        q = m.ao.quantization
        fused = q.fuse_modules_qat(model.train(), FUSED)
        fused.qconfig = q.get_default_qat_qconfig("x86")
        ready = q.prepare_qat(fused)
        optimizer = m.optim.SGD(ready.parameters(), 0.05)
        seen = []
        for x in inputs(8, 3, 14, 14):
            loss = (ready(m.from_numpy(x)) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen.append(float(loss))
        losses.append(seen)
        made.append(q.convert(ready.eval()))
    np.testing.assert_allclose(*losses, rtol=1e-3)
    a, b = made
    assert set(a.state_dict()) == set(b.state_dict())
    x = inputs(8, 3, 14, 14)[1]
    y, z = a(torch.from_numpy(x)).numpy(), b(votive.from_numpy(x)).numpy()
    np.testing.assert_allclose(a.fc.scale, b.fc.scale, rtol=1e-3)
    assert np.abs(y - z).max() <= 2.1 * float(a.fc.scale)


def _layer(kind: str, m: Any) -> Any:
    made = {
        "Linear": lambda: m.nn.Linear(16, 24),
        "LSTM": lambda: m.nn.LSTM(16, 24, 2, bidirectional=True, batch_first=True),
        "GRU": lambda: m.nn.GRU(16, 24),
        "LSTMCell": lambda: m.nn.LSTMCell(16, 24),
        "GRUCell": lambda: m.nn.GRUCell(16, 24),
        "RNNCell": lambda: m.nn.RNNCell(16, 24, nonlinearity="relu"),
    }
    return m.nn.Sequential(made[kind]())


def _flat(y: Any) -> list[np.ndarray]:
    return [p for v in y for p in _flat(v)] if isinstance(y, tuple) else [y.numpy()]


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("kind", ["Linear", "LSTM", "GRU", "LSTMCell", "GRUCell", "RNNCell"])
def test_dynamic_layers_give_the_numbers_of_torch(kind: str, channels: bool) -> None:
    torch = pytest.importorskip("torch")
    found = []
    x = inputs(*((5, 16) if kind.endswith("Cell") else (5, 3, 16)))[1]
    for m, model in zip((torch, votive), twins(lambda m: _layer(kind, m)), strict=True):
        q = m.ao.quantization
        spec = {getattr(m.nn, kind): q.per_channel_dynamic_qconfig} if channels else None
        small = q.quantize_dynamic(model, spec)
        found.append((small, _flat(small[0](m.from_numpy(x)))))
    (a, ya), (b, yb) = found
    for p, q in zip(ya, yb, strict=True):
        # Where one value lies next to a half, a code differs by one.
        assert np.abs(p - q).max() <= 0.02
        assert np.abs(p - q).mean() <= 1e-3
    assert set(a.state_dict()) == set(b.state_dict())


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
def test_tables_give_the_rows_of_torch() -> None:
    torch = pytest.importorskip("torch")
    at, offsets = np.array([1, 5, 9, 3]), np.array([0, 2])
    for kind in ("Embedding", "EmbeddingBag"):
        found = []
        for m, model in zip((torch, votive), twins(partial(_table, kind)), strict=True):
            small = m.ao.quantization.quantize_dynamic(model, dtype=m.quint8)
            given = [m.from_numpy(v) for v in ((at,) if kind == "Embedding" else (at, offsets))]
            found.append((small, small[0](*given).numpy()))
        (a, ya), (b, yb) = found
        np.testing.assert_allclose(ya, yb, atol=1e-6)
        np.testing.assert_array_equal(a[0].weight().int_repr().numpy(), b[0].weight().int_repr().numpy())
        assert set(a.state_dict()) == set(b.state_dict())


def _table(kind: str, m: Any) -> Any:
    return m.nn.Sequential(m.nn.Embedding(10, 12) if kind == "Embedding" else m.nn.EmbeddingBag(10, 12, mode="sum"))


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    ["MinMaxObserver", "MovingAverageMinMaxObserver", "PerChannelMinMaxObserver", "HistogramObserver"]
    + ["MovingAveragePerChannelMinMaxObserver"],
)
def test_observers_choose_the_scales_of_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    channels = "PerChannel" in name
    for i, (kind, scheme) in enumerate(
        [("quint8", "affine"), ("qint8", "symmetric"), ("quint8", "symmetric"), ("qint8", "affine")]
    ):
        for how in ({}, {"reduce_range": True}, {"quant_min": -10, "quant_max": 100}):
            if how.get("reduce_range") and (kind, scheme) == ("quint8", "symmetric"):
                continue
            found = []
            for m in (torch, votive):
                qscheme = getattr(m, f"per_{'channel' if channels else 'tensor'}_{scheme}")
                observer = getattr(m.ao.quantization, name)(dtype=getattr(m, kind), qscheme=qscheme, **how)
                for x in inputs(5, 40, count=3):
                    assert observer(m.from_numpy(x + i)).shape == (5, 40)
                found.append([v.numpy() for v in observer.calculate_qparams()])
            for p, q in zip(*found, strict=True):
                np.testing.assert_array_equal(p, q)


def calibrated() -> Any:
    votive.manual_seed(0)
    model = Q.fuse_modules(net(votive).eval(), FUSED)
    model.qconfig = Q.get_default_qconfig("x86")
    ready = Q.prepare(model)
    for x in inputs(4, 3, 14, 14):
        ready(votive.from_numpy(x))
    return Q.convert(ready), votive.from_numpy(inputs(4, 3, 14, 14)[0]), model


def test_converted_models_are_near_and_kept_in_files(tmp_path: Path) -> None:
    model, x, exact = calibrated()
    want = model(x)
    assert float((want - exact(x)).abs().max()) <= 0.1 * float(exact(x).abs().max())
    votive.save(model.state_dict(), tmp_path / "f")
    other, *_ = calibrated()
    other.fc.set_weight_bias(votive.quantize_per_tensor(votive.zeros(10, 72), 0.1, 0, votive.qint8), None)
    other.fc.scale = 7.0
    other.load_state_dict(votive.load(tmp_path / "f"))
    assert other(x).equal(want)
    assert pickle.loads(pickle.dumps(model.fc))(model.quant(votive.ones(2, 72))).shape == (2, 10)
    assert copy.deepcopy(model)(x).equal(want)
    with pytest.raises(RuntimeError, match="Missing key"):
        other.load_state_dict({k: v for k, v in model.state_dict().items() if k != "fc._packed_params._packed_params"})


def test_glass_sees_and_edits_converted_models() -> None:
    model, x, _ = calibrated()
    plain = model(x)
    with glass.capture(model, "*") as seen:
        model(x)
    assert seen["conv"].dtype is votive.quint8
    assert seen["fc"].shape == (4, 10)
    assert seen["dequant"].equal(plain)
    with glass.patch(model, {"conv2": lambda value: value.clamp(0.0, 0.1)}) as receipt:
        changed = model(x)
    assert not changed.equal(plain)
    assert model(x).equal(plain)
    assert "conv2" in str(receipt)
    for scaled in (0.0, lambda value: value / 2):
        with glass.patch(model, {"dequant": scaled}):
            model(x)
    with votive.debug(model, x) as d:
        d.run("fc")
        assert d.inputs[0].dtype is votive.quint8
        d.over()
        assert d.output.dtype is votive.quint8
        assert d.output.shape == (4, 10)
        assert d.finish().equal(plain)
    # A number has no scale: that is said, not guessed.
    with pytest.raises(RuntimeError, match="takes the scale"), glass.patch(model, {"conv": 0.0}):
        model(x)


def test_hooks_of_users_move_along() -> None:
    model = nn.Sequential(nn.Linear(4, 4))
    calls: list[int] = []
    model[0].register_forward_hook(lambda module, args, out: calls.append(1))
    small = Q.quantize_dynamic(model)
    small(votive.ones(1, 4))
    assert calls == [1]
    assert type(small[0]).__name__ == "Linear"
    assert small[0] is not model[0]


def test_what_has_no_configuration_stays() -> None:
    model = nn.Sequential(Q.QuantStub(), nn.Linear(4, 4), Q.DeQuantStub(), nn.Linear(4, 4)).eval()
    model.qconfig = Q.default_qconfig
    model[3].qconfig = None
    ready = Q.prepare(model)
    ready(votive.randn(3, 4))
    made = Q.convert(ready)
    assert type(made[3]) is nn.Linear
    assert repr(made[1]).startswith("QuantizedLinear")
    assert made(votive.ones(2, 4)).shape == (2, 4)
    with pytest.warns(UserWarning, match="None of the submodule"):
        Q.prepare(nn.Sequential(nn.Linear(2, 2)))


def test_wrong_uses_are_errors() -> None:
    with pytest.raises(AssertionError, match="training mode"):
        Q.prepare_qat(nn.Sequential(nn.Linear(2, 2)).eval())
    with pytest.raises(ValueError, match="observer instance"):
        Q.QConfig(Q.MinMaxObserver(), Q.MinMaxObserver)
    with pytest.raises(AssertionError, match="not supported"):
        Q.get_default_qconfig("tpu")
    with pytest.raises(AssertionError, match="fuser method"):
        Q.fuse_modules(nn.Sequential(nn.ReLU(), nn.Linear(2, 2)), ["0", "1"])
    with pytest.raises(NotImplementedError, match="is_reference"):
        Q.convert(nn.Sequential(), is_reference=True)
    with pytest.raises(ValueError, match="Don't know"):
        Q.quantize_dynamic(nn.Sequential(nn.Linear(2, 2)), dtype=votive.float16)
    with pytest.raises(RuntimeError, match="quantize_per_tensor"):
        votive.ao.nn.quantized.Linear(2, 2)(votive.ones(1, 2))
    q = votive.quantize_per_tensor(votive.ones(1, 2), 0.1, 0, votive.quint8)
    with pytest.raises(RuntimeError, match="dequantize"):
        votive.ao.nn.quantized.dynamic.Linear(2, 2)(q)


def test_the_engine_says_to_how_many_bits_inputs_are_rounded() -> None:
    small = Q.quantize_dynamic(nn.Sequential(nn.Linear(64, 16)))
    x = votive.randn(3, 64)
    seven = small(x)
    with votive.backends.switches.switched("votive.backends.quantized", {"engine": "qnnpack"}):
        eight = small(x)
    exact = x @ small[0].weight().dequantize().T + small[0].bias()
    assert float((eight - exact).abs().mean()) < float((seven - exact).abs().mean())
