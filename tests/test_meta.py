"""Tensors without values: shapes, dtypes and layouts are those of real ones, and asking for numbers is an error."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import numpy as np
import pytest

import votive
from votive import nn

from .ops.catalog import Record, arrays, load, transform
from .ops.test_catalog import dtypes_of, outputs

RECORDS = load()
# What looks at numbers to know its result.
LOOKS = {
    "Tensor.cpu",
    "nn.functional.ctc_loss",
    "nn.functional.embedding_bag",
    "is_nonzero",
    "equal",
    "allclose",
    "linalg.lstsq",
    "nn.functional.multilabel_margin_loss",
    "masked_select",
    "nonzero",
    "argwhere",
    "nn.functional.one_hot",
    "repeat_interleave",
    "bincount",
    "histc",
    "histogram",
    "histogramdd",
    "unique",
    "unique_consecutive",
    "nn.functional.grouped_mm",
}
# Made of memory that others own.
ELSEWHERE = {"frombuffer"}


def on_meta(record: Record, sample: Any, dtype: str, device: str, grad: bool) -> list[Any]:
    def make(a: np.ndarray[Any, Any]) -> Any:
        t = votive.from_numpy(np.array(a)) if a.dtype.kind != "V" else votive.asarray(a)
        t = t.to(device).detach()
        return t.requires_grad_() if grad and t.dtype.is_inexact else t

    args, kwargs = transform(arrays(record, sample, dtype), make, np.ndarray)
    fn = record.resolve(votive)
    tensors: list[Any] = []
    transform((args, kwargs), tensors.append, votive.Tensor)
    if not tensors and "device" not in kwargs:
        try:
            if "device" in inspect.signature(fn).parameters:
                kwargs = {**kwargs, "device": device}
        except (TypeError, ValueError):
            pass
    return outputs(fn(*args, **kwargs))  # type: ignore[no-any-return]


@pytest.mark.parametrize("record", RECORDS, ids=[r.name for r in RECORDS])
def test_results_look_as_they_do_on_the_cpu(record: Record) -> None:
    if record.name in ELSEWHERE:
        pytest.skip("its memory is that of another object")
    for sample in record.samples[:3]:
        dtype = dtypes_of(record)[0]
        real = on_meta(record, sample, dtype, "cpu", grad=False)
        try:
            empty = on_meta(record, sample, dtype, "meta", grad=False)
        except (NotImplementedError, RuntimeError):
            if record.name not in LOOKS:
                raise
            continue
        for a, b in zip(real, empty, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            assert a.numel() == 0 or a.stride() == b.stride()
            assert b.device.type == "meta"


def test_gradients_have_the_shape_of_what_they_belong_to() -> None:
    with votive.device("meta"):
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10))
        loss = nn.functional.cross_entropy(model(votive.randn(4, 3, 8, 8)), votive.zeros(4, dtype=votive.int64))
    loss.backward()
    for p in model.parameters():
        assert p.grad is not None
        assert (p.grad.shape, p.grad.device.type) == (p.shape, "meta")


def test_huge_tensors_take_no_memory() -> None:
    x = votive.empty(10**9, 10**6, device="meta")
    assert (x @ x.t()).shape == (10**9, 10**9)
    assert x.untyped_storage() is not None
    assert x.data_ptr() == 0


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda x: x.sum().item(), RuntimeError),
        (lambda x: bool(x.sum() > 0), RuntimeError),
        (lambda x: x.tolist(), NotImplementedError),
        (lambda x: x.cpu(), NotImplementedError),
        (lambda x: x.to("cpu", votive.float64), NotImplementedError),
        (lambda x: votive.zeros(2, 3).copy_(x), NotImplementedError),
        (lambda x: x.numpy(), TypeError),
        (lambda x: x.nonzero(), NotImplementedError),
        (lambda x: x + votive.ones(3), RuntimeError),
        (lambda x: nn.ParameterList([x]).to("cpu"), NotImplementedError),
    ],
)
def test_asking_for_numbers_is_an_error(ask: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="meta"):
        ask(votive.empty(2, 3, device="meta"))


def test_a_module_gets_its_memory_later() -> None:
    with votive.device("meta"):
        made = nn.LSTM(3, 4)
    assert {p.device.type for p in made.parameters()} == {"meta"}
    real = nn.LSTM(3, 4)
    with pytest.warns(UserWarning, match="meta"):
        made.load_state_dict(real.state_dict())
    assert {p.device.type for p in made.parameters()} == {"meta"}
    made.load_state_dict(real.state_dict(), assign=True)
    x = votive.randn(5, 2, 3)
    assert votive.equal(made(x)[0], real(x)[0])
    with votive.device("meta"):
        other = nn.LSTM(3, 4)
    other.to_empty(device="cpu").load_state_dict(real.state_dict())
    assert votive.equal(other(x)[0], real(x)[0])


def test_it_says_what_it_is() -> None:
    assert repr(votive.empty(2, 3, device="meta")) == "tensor(..., device='meta', size=(2, 3))"
    assert repr(votive.zeros(4, dtype=votive.int64, device="meta")).endswith("size=(4,), dtype=votive.int64)")
    assert repr(votive.ones(2, device="meta", requires_grad=True) * 2).endswith("grad_fn=<MulBackward0>)")


def test_copies_and_pickles_stay_on_meta() -> None:
    x = votive.empty(2, 3, device="meta").t()
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone(), x.detach()):
        assert (y.shape, y.stride(), y.device.type) == ((3, 2), (1, 3), "meta")
