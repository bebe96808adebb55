"""Tensors of quantized types: codes, views, files, what raises; all of it as torch has it."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive.core.errors import UnsupportedError

KINDS = ("quint8", "qint8", "qint32")


def q(*shape: int, kind: str = "quint8", scale: float = 0.1, zero: int = 5) -> Any:
    votive.manual_seed(0)
    return votive.quantize_per_tensor(votive.randn(*shape), scale, zero, getattr(votive, kind))


def test_what_moves_elements_is_done_to_the_codes() -> None:
    x = q(2, 3, 4)
    numbers = x.dequantize()
    for call in (
        lambda t: t[0],
        lambda t: t[:, 1:, None],
        lambda t: t.reshape(6, 4),
        lambda t: t.permute(2, 0, 1),
        lambda t: t.transpose(0, 2).contiguous(),
        lambda t: t.flatten(1),
        lambda t: t.unsqueeze(0).expand(5, 2, 3, 4),
        lambda t: t.chunk(2, 1)[0],
        lambda t: votive.cat([t, t], 1),
        lambda t: t.clone().flip(0),
        lambda t: t[t > 0],
        lambda t: t.relu(),
        lambda t: votive.nn.functional.max_pool1d(t, 2),
        lambda t: t.sort().values,
        lambda t: t.max(),
    ):
        got = call(x)
        assert got.dtype is votive.quint8
        assert got.q_scale() == 0.1
        assert got.q_zero_point() == 5
        assert got.dequantize().equal(call(numbers))


def test_compiled_programs_see_another_scale() -> None:
    run = votive.compile(lambda t: t.dequantize() * 2)
    x, y = q(3, 4), q(3, 4, scale=0.3, zero=9)
    for t in (x, y, x):
        assert run(t).equal(t.dequantize() * 2)
    x.copy_(y)
    assert run(x).equal(y.dequantize() * 2)


def test_a_view_shares_its_codes() -> None:
    x = q(3, 4)
    x[1].copy_(votive.full((4,), 2.0))
    assert x.dequantize()[1].tolist() == [2.0] * 4


@pytest.mark.parametrize("kind", KINDS)
def test_files_pickles_and_copies_keep_them(kind: str, tmp_path: Path) -> None:
    one = q(2, 3, kind=kind)
    scales, zeros = votive.tensor([0.1, 0.2, 0.3]), votive.tensor([0, 1, 2])
    some = votive.quantize_per_channel(votive.randn(2, 3), scales, zeros, 1, getattr(votive, kind))
    votive.save({"one": one, "some": some, "scheme": some.qscheme()}, tmp_path / "f")
    found = votive.load(tmp_path / "f")
    assert found["one"].equal(one)
    assert found["some"].equal(some)
    assert found["scheme"] is votive.per_channel_affine
    for x in (one, some):
        assert pickle.loads(pickle.dumps(x)).equal(x)
        assert copy.deepcopy(x).equal(x)
    assert not one.equal(q(2, 3, kind=kind, scale=0.2))


def test_files_with_wrong_parts_are_refused() -> None:
    from votive.serialization.container import FileFormatError
    from votive.serialization.skeleton import decode

    codes = votive.zeros(2, dtype=votive.uint8)
    good = {"dtype": "quint8", "axis": None, "codes": {"tensor": 0}, "scale": 0.1, "zero_point": 3}
    assert decode({"quantized": good}, lambda json: codes).q_zero_point() == 3
    for wrong in (
        {"dtype": "float32"},
        {"axis": 7},
        {"axis": 0},
        {"scale": "x"},
        {"zero_point": 1.5},
        {"dtype": "qint8"},
    ):
        with pytest.raises(FileFormatError):
            decode({"quantized": {**good, **wrong}}, lambda json: codes)


def test_whatever_else_raises_and_says_to_dequantize() -> None:
    x = q(2, 2)
    for call in (lambda: x + x, lambda: x @ x, lambda: votive.exp(x), lambda: x.sum()):
        with pytest.raises(UnsupportedError, match="dequantize"):
            call()
    with pytest.raises(RuntimeError, match="dequantize"):
        x.to(votive.int32)
    with pytest.raises(RuntimeError, match="quantize_per_tensor"):
        votive.ones(2).to(votive.quint8)
    with pytest.raises(RuntimeError, match="require gradients"):
        x.requires_grad_()
    with pytest.raises(TypeError, match="numpy"):
        x.numpy()
    with pytest.raises(NotImplementedError, match="quantized tensor"):
        votive.q_scale(votive.ones(2))
    with pytest.raises(RuntimeError, match="above upper bound"):
        votive.quantize_per_tensor(votive.ones(2), 0.1, 300, votive.quint8)
    with pytest.raises(RuntimeError, match="Float Tensor"):
        votive.quantize_per_tensor(votive.ones(2).half(), 0.1, 0, votive.quint8)
    with pytest.raises(RuntimeError, match="per channel"):
        votive.quantize_per_channel(votive.ones(2), votive.ones(2), votive.zeros(2).int(), 0, votive.qint8).q_scale()


def test_casts_to_floating_point_types_give_numbers() -> None:
    x = q(2, 2)
    assert x.to(votive.float64).equal(x.dequantize().double())
    assert x.half().dtype is votive.float16
    assert x.float().equal(x.dequantize())


def test_empty_and_0d_tensors_are_quantized() -> None:
    for shape in ((0,), (), (2, 0, 3)):
        x = votive.quantize_per_tensor(votive.zeros(shape), 0.5, 1, votive.qint8)
        assert x.shape == shape
        assert x.dequantize().equal(votive.zeros(shape))
    assert q(2, 2)[0, 0].item() == q(2, 2).dequantize()[0, 0].item()


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
def test_codes_and_texts_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    for i in range(40):
        scale, zero = float(rng.uniform(0.001, 2)), int(rng.integers(0, 128))
        ties = ((np.arange(-150, 150) + 0.5) * scale).astype(np.float32)  # halves, and their neighbours
        x = np.concatenate([ties, np.nextafter(ties, ties * 2), [1e30, -1e30, np.inf, -np.inf, 0]]).astype("f4")
        for kind in KINDS:
            a = torch.quantize_per_tensor(torch.from_numpy(x), scale, zero, getattr(torch, kind))
            b = votive.quantize_per_tensor(votive.from_numpy(x), scale, zero, getattr(votive, kind))
            np.testing.assert_array_equal(a.int_repr().numpy(), b.int_repr().numpy())
            near = x > -1e9  # torch's difference from the zero wraps around below the least code of 32 bits
            np.testing.assert_array_equal(a.dequantize().numpy()[near], b.dequantize().numpy()[near])
        rows = np.stack([x[:300], x[300:600]])
        steps, zeros = np.array([scale, scale / 3], "f4"), np.array([zero, 1])
        a = torch.quantize_per_channel(*map(torch.from_numpy, (rows, steps, zeros)), 0, torch.quint8)
        b = votive.quantize_per_channel(*map(votive.from_numpy, (rows, steps, zeros)), 0, votive.quint8)
        np.testing.assert_array_equal(a.int_repr().numpy(), b.int_repr().numpy())
        np.testing.assert_array_equal(a.dequantize().numpy(), b.dequantize().numpy())
        y = (rng.standard_normal(9) * 10.0 ** rng.integers(-7, 3)).astype("f4") + i % 3
        for kind in ("quint8", "qint8"):
            for narrow in (False, True):
                a = torch.quantize_per_tensor_dynamic(torch.from_numpy(y), getattr(torch, kind), narrow)
                b = votive.quantize_per_tensor_dynamic(votive.from_numpy(y), getattr(votive, kind), narrow)
                assert (a.q_scale(), a.q_zero_point()) == (b.q_scale(), b.q_zero_point())
        if i < 5:
            a = torch.quantize_per_tensor(torch.from_numpy(rows[:, :3]), scale, zero, torch.qint8)
            b = votive.quantize_per_tensor(votive.from_numpy(rows[:, :3]), scale, zero, votive.qint8)
            assert str(a).replace("torch.", "votive.").split() == str(b).split()
            for name in ("sigmoid", "tanh", "relu"):
                ya, yb = getattr(torch, name)(a), getattr(votive, name)(b)
                assert ya.q_scale() == yb.q_scale()
                assert ya.q_zero_point() == yb.q_zero_point()
                assert np.abs(ya.int_repr().numpy().astype(int) - yb.int_repr().numpy()).max() <= 1
