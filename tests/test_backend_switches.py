"""torch's switches under `votive.backends`: their names and values, and that those which can change something do."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import pytest

import votive
from tests import docstrings
from votive import backends
from votive.backends.cuda import precision, public

INSIDE = {"base", "common", "cpu", "cuda", "region", "switches", "trace"}
NAMES = sorted(m.name for m in pkgutil.iter_modules(backends.__path__) if m.name not in INSIDE)
MODULES = [importlib.import_module(f"votive.backends.{name}") for name in NAMES]
DOCS = docstrings.examples([*MODULES, public])


@pytest.mark.parametrize("name", sorted(DOCS))
def test_the_examples_run(name: str) -> None:
    docstrings.run(name, DOCS[name])


@pytest.mark.parity
@pytest.mark.parametrize("name", [*NAMES, "cuda"])
def test_the_public_names_of_torch_are_there(name: str) -> None:
    theirs = getattr(pytest.importorskip("torch").backends, name, None)
    inner: Any = getattr(theirs, "m", theirs)
    typing = {"TYPE_CHECKING", "Optional", "Any", "contextmanager", "deprecated"}
    rocm = {"preferred_rocm_fa_library", "blas_workspace_size", "cublas_workspace_size", "cublaslt_workspace_size"}
    for key in {*dir(inner), *dir(type(theirs))} - typing - rocm:
        value = getattr(inner, key, None)
        own = str(getattr(value, "__module__", "torch.backends")).startswith("torch.backends")
        if key[0] == "_" or type(value).__name__ == "module" or not own or isinstance(value, type):
            continue
        assert hasattr(getattr(votive.backends, name), key), f"{name}.{key}"


def test_flags_are_set_for_a_block_and_wrong_ones_raise() -> None:
    cudnn = votive.backends.cudnn
    cudnn.benchmark = True
    with cudnn.flags(enabled=True, deterministic=True):
        assert (cudnn.benchmark, cudnn.deterministic) == (False, True)
    assert (cudnn.benchmark, cudnn.deterministic) == (True, False)
    cudnn.benchmark = False
    with pytest.raises(RuntimeError, match="expected bool, got 1"):
        cudnn.benchmark = 1
    with pytest.raises(AttributeError, match="no switch 'benchmrk'"):
        cudnn.benchmrk = True
    with pytest.raises(RuntimeError, match="fp32_precision"):
        cudnn.conv.fp32_precision = "half"


def test_convolutions_use_tf32_only_where_both_switches_allow_it() -> None:
    matmul = votive.backends.cuda.matmul
    assert not precision.convolutions.allow_tf32
    try:
        matmul.allow_tf32 = True
        assert precision.convolutions.allow_tf32
        assert matmul.fp32_precision == "tf32"
        with votive.backends.cudnn.flags(allow_tf32=False):
            assert not precision.convolutions.allow_tf32
            assert not precision.convolutions.library
        assert precision.convolutions.library
        matmul.fp32_precision = "ieee"
        assert not matmul.allow_tf32
    finally:
        matmul.allow_tf32 = False
    with pytest.raises(AttributeError, match="no switch"):
        matmul.allow_everything = True


def test_forbidding_all_fused_kernels_leaves_single_operators() -> None:
    with public.sdp_kernel(enable_flash=False, enable_mem_efficient=False, enable_cudnn=False):
        assert public.allowed.restricted
        with votive.nn.attention.sdpa_kernel([]):
            assert not public.math_sdp_enabled()
    assert not public.allowed.restricted
