"""Autocast against torch: the dtypes of all operators, the lists, and a training run."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import votive
from votive.ops.registry import COMPOSITES, OPS

# Where votive's dtype differs from torch's on purpose.
DIFFERENT = {
    "nn.functional.pad": "moving values needs no float32",
    "nn.functional.max_pool3d": "float32 with indices too",
    "tensordot": "one product, also where torch multiplies and sums",
    "inner": "one product, also where torch takes a dot product",
    "linalg.pinv": "one operator in float32, where torch multiplies its factors in bfloat16",
    "svd_lowrank": "torch returns factors of two dtypes",
    "pca_lowrank": "torch returns factors of two dtypes",
}


def _dtypes(value: Any, kind: type) -> Any:
    if isinstance(value, kind):
        return str(value.dtype).rpartition(".")[2]  # type: ignore[attr-defined]
    return [_dtypes(v, kind) for v in value] if isinstance(value, (tuple, list)) else type(value)


def _op_names() -> list[str]:
    try:
        from torch.testing._internal.common_methods_invocations import op_db
    except ImportError:
        return []
    return sorted({op.name for op in op_db} - set(DIFFERENT))


@pytest.mark.parity
@pytest.mark.parametrize("name", _op_names())
def test_results_under_autocast_have_the_dtypes_of_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    from torch.testing._internal.common_methods_invocations import op_db

    from tests.parity.convert import Twin
    from tests.parity.resolve import counterpart
    from tests.parity.subject import Unsupported, votive_subject

    subject = votive_subject()
    for op in (o for o in op_db if o.name == name):
        fn = counterpart(subject, op)
        for dtype in (torch.float32, torch.bfloat16):
            if fn is None or dtype not in op.supported_dtypes("cpu"):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # also while torch makes the samples: they come one by one
                samples = list(itertools.islice(op.sample_inputs("cpu", dtype), 2))
            for sample in samples:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        twin = Twin.of(subject, sample)
                        with torch.autocast("cpu", dtype=torch.bfloat16):
                            theirs = _dtypes(twin.torch.run(op.op), torch.Tensor)
                    except (Unsupported, RuntimeError, NotImplementedError):
                        continue
                    twin = Twin.of(subject, sample)
                    try:
                        with votive.autocast("cpu", dtype=votive.bfloat16):
                            ours = _dtypes(twin.votive.run(fn), votive.Tensor)
                    except (Unsupported, NotImplementedError):
                        continue  # a dtype that votive's operator does not take at all
                assert ours == theirs


@pytest.mark.parity
def test_the_lists_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    names = torch._C._dispatch_get_all_op_names()
    for device, key in (("cpu", "AutocastCPU"), ("cuda", "AutocastCUDA")):
        theirs = {
            n.removeprefix("aten::").partition(".")[0]
            for n in names
            if n.startswith("aten::") and torch._C._dispatch_has_kernel_for_dispatch_key(n, key)
        }
        listed = {
            name.removeprefix("nn.functional."): item.autocast[device]
            for name, item in [*OPS.items(), *COMPOSITES.items()]
            if not name.startswith("_") and device in (item.autocast or ())
        }
        torch_names = {
            "cross_entropy": "cross_entropy_loss" if device == "cpu" else "nll_loss",
            "grid_sample": "grid_sampler",
            "interpolate": "upsample_bilinear2d",
            "max_unpool1d": "max_unpool2d",
            "ldexp": "pow",
            "square": "pow",
            "mvlgamma": "log",
            "normalize": "linalg_vector_norm",
            "pairwise_distance": "norm",
        }
        for name, policy in listed.items():
            registered = torch_names.get(name, name.replace(".", "_")) in theirs
            assert registered == (policy != "off"), f"{name} on {device}"
        for name in theirs:
            path = name.replace("_", ".", 1) if name.startswith(("linalg_", "fft_")) else name
            if path in OPS or path in COMPOSITES or f"nn.functional.{path}" in COMPOSITES:
                assert path in listed or path.startswith("_"), f"{name} on {device}"


@pytest.mark.parity
@pytest.mark.parametrize("scaled", [False, True])
def test_a_small_training_run_follows_torch(scaled: bool) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(32, 8)).astype(np.float32)
    t = (x @ rng.normal(size=(8, 1)) > 0).astype(np.float32)
    start = [rng.normal(size=s).astype(np.float32) * 0.3 for s in ((16, 8), (16,), (1, 16), (1,))]
    curves = []
    for lib in (votive, torch):
        params = [lib.tensor(a, requires_grad=True) for a in start]
        opt = lib.optim.AdamW(params, lr=0.02)
        scaler = lib.amp.GradScaler("cpu", enabled=scaled)
        data, target = lib.tensor(x), lib.tensor(t)
        losses = []
        for _ in range(30):
            opt.zero_grad()
            with lib.autocast("cpu", dtype=lib.bfloat16):
                linear = lib.nn.functional.linear
                h = linear(data, params[0], params[1]).relu()
                out = linear(h, params[2], params[3])
                loss = lib.nn.functional.binary_cross_entropy_with_logits(out, target)
            assert out.dtype is lib.bfloat16
            assert loss.dtype is lib.float32
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
            losses.append(loss.item())
        curves.append(losses)
    assert curves[1][-1] < 0.5 * curves[1][0]
    # bfloat16 keeps 8 bits: sums in another order differ in the last one now and then.
    np.testing.assert_allclose(curves[0], curves[1], rtol=0.02)
