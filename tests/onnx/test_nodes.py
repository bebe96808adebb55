"""Every case that ONNX itself gives for its operators, read by `votive.onnx`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the package onnx is not installed")

import votive  # noqa: E402
from votive.onnx import OnnxLoadError  # noqa: E402
from votive.onnx.load import from_proto, tensor_of  # noqa: E402

# Operators without a meaning here: text, trees, pictures as bytes, options, optimizers.
REFUSED = {
    "ImageDecoder",
    "OptionalHasElement",
    "OptionalGetElement",
    "Optional",
    "TfIdfVectorizer",
    "StringSplit",
    "StringNormalizer",
    "StringConcat",
    "RegexFullMatch",
    "LabelEncoder",
    "TreeEnsemble",
    "ArrayFeatureExtractor",
    "Binarizer",
    "Momentum",
    "Adagrad",
    "Adam",
    "BitCast",
    "DeformConv",
    "RoiAlign",
    "MelWeightMatrix",
}
# Written out by ONNX's own inliner, which fails for inputs that are left out.
INLINED = {"Attention", "LinearAttention", "CausalConvWithState", "FlexAttention"}
# Other random numbers; text; types of 4 and 2 bits and kinds of float8 that votive has not.
DIFFERENT = (
    "bernoulli",
    "training_dropout",
    "string",
    "UINT4",
    "INT4",
    "UINT2",
    "INT2",
    "FNUZ",
    "FLOAT4",
    "E8M0",
    "int4",
    "int2",
    "float4",
)
# What is refused with a reason.
SINGLE = {
    "test_col2im_5d",
    "test_reduce_max_empty_set_bool",
    "test_resize_tf_crop_and_resize_extrapolation_value",
    "test_scan_sum",
}


def cases() -> dict[str, list[Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        found: dict[str, list[Any]] = {}
        for case in collect_testcases(None):
            found.setdefault(case.model.graph.node[0].op_type, []).append(case)
    return found


CASES = cases()


def given(x: Any) -> Any:
    if isinstance(x, onnx.TensorProto):
        return tensor_of(x)
    if isinstance(x, list):
        return [given(v) for v in x]
    return votive.from_numpy(np.array(x))


def same(found: Any, wanted: Any, case: Any) -> None:
    if isinstance(wanted, list):
        assert len(found) == len(wanted)
        for f, w in zip(found, wanted, strict=True):
            same(f, w, case)
        return
    found, wanted = found.detach().numpy(), given(wanted).numpy()
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    if found.dtype.kind in "biu":
        np.testing.assert_array_equal(found, wanted)
        return
    half = {2: 1e-3, 1: 1e-1}.get(found.dtype.itemsize, 0.0)
    if found.dtype.name == "bfloat16":
        half = 1.6e-2
    wide = [np.asarray(v).astype(np.complex128 if v.dtype.kind == "c" else np.float64) for v in (found, wanted)]
    np.testing.assert_allclose(*wide, rtol=max(case.rtol, half), atol=max(1e-5, half))


def refused(case: Any, why: str) -> bool:
    if case.name in SINGLE or any(part in case.name for part in DIFFERENT):
        return True
    if "not implemented for votive.uint" in why:  # torch has no arithmetic of these either
        return True
    return any(op in why for op in REFUSED) or any(op in why and "cannot be written out" in why for op in INLINED)


@pytest.mark.parametrize("op", sorted(CASES))
def test_an_operator_means_what_onnx_says(op: str) -> None:
    agreed = 0
    for case in CASES[op]:
        if any(part in case.name for part in DIFFERENT):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module = from_proto(case.model)
                for inputs, outputs in case.data_sets:
                    found = module(*[given(x) for x in inputs])
                    found = found if isinstance(found, tuple) else (found,)
                    for f, w in zip(found, outputs, strict=True):
                        same(f, w, case)
            agreed += 1
        except (OnnxLoadError, NotImplementedError, RuntimeError, IndexError) as e:
            if not refused(case, f"{type(e).__name__}: {e}"):
                raise
    if not agreed:
        assert op in REFUSED or all(refused(c, "") for c in CASES[op])
        pytest.skip(f"{op} is refused")
