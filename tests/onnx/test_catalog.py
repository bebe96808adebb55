"""Every operator of the catalog is written as ONNX so that it gives the same again, or is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the package onnx is not installed")

import votive
from votive.onnx import OnnxExporterError, export
from votive.onnx.export import _tensors
from votive.onnx.load import from_proto

from ..ops.catalog import Record, arrays, load, transform
from ..ops.test_catalog import dtypes_of, outputs

# Arbitrary values; the signs of zeros, and infinities beside NaN.
DIFFERENT = {"empty_like", "Tensor.new_empty", "Tensor.new_empty_strided", "atan2", "hypot"}
RECORDS = [r for r in load() if r.name not in DIFFERENT]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("record", RECORDS, ids=[r.name for r in RECORDS])
def test_an_operator_survives_the_file(record: Record) -> None:
    known = dtypes_of(record)
    sample, dtype = record.samples[0], "float32" if "float32" in known else known[0]
    args, kwargs = transform(arrays(record, sample, dtype), lambda a: votive.from_numpy(np.array(a)), np.ndarray)
    tensors: list[Any] = []
    transform((args, kwargs), tensors.append, votive.Tensor)
    if not tensors:
        pytest.skip("nothing goes in")

    def call(*values: Any) -> Any:
        left = iter(values)
        given, named = transform((args, kwargs), lambda t: next(left), votive.Tensor)
        given = tuple(v.clone() if isinstance(v, votive.Tensor) else v for v in given)
        return tuple(v for v in outputs(record.resolve(votive)(*given, **named)) if isinstance(v, votive.Tensor))

    with votive.no_grad():
        wanted = call(*tensors)
    if not wanted:
        pytest.skip("no tensor comes out")
    try:
        program = export(call, tuple(tensors))
    except OnnxExporterError as e:
        pytest.skip(str(e))
    for w, f in zip(wanted, _tensors(from_proto(program.model_proto)(*tensors)), strict=True):
        assert (w.shape, w.dtype) == (f.shape, f.dtype)
        near = 1e-4 if w.dtype.itemsize >= 4 else 2e-2
        found, want = (t.detach().to(votive.float64).numpy() for t in (f, w))
        np.testing.assert_allclose(found, want, rtol=near, atol=near)
