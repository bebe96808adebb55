"""`votive.backends.cuda` under torch's names: the switches of attention, and of libraries. Starts nothing.

Attention has one fused kernel, so flash, memory-efficient and cuDNN attention are the same, and any of their switches
allows it. Libraries are chosen by votive, so a preference is kept where it names what there is and raises otherwise.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from ...core.attention_kernels import allowed

MATH, FLASH, EFFICIENT, CUDNN = range(4)
_reduced_math = False


def is_built() -> bool:
    """Whether the CUDA backend is part of votive: always; `votive.cuda.is_available()` says whether it can run.

    >>> votive.backends.cuda.is_built()
    True
    """
    return True


def _switch(which: int, on: bool) -> None:
    allowed.choose(allowed.on | {which} if on else allowed.on - {which})


def enable_flash_sdp(enabled: bool) -> None:
    """Allow or forbid flash attention, which is votive's fused kernel.

    >>> votive.backends.cuda.enable_flash_sdp(True)
    """
    _switch(FLASH, enabled)


def flash_sdp_enabled() -> bool:
    """Whether flash attention is allowed.

    >>> votive.backends.cuda.flash_sdp_enabled()
    True
    """
    return FLASH in allowed.on


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Allow or forbid memory-efficient attention, which is votive's fused kernel.

    >>> votive.backends.cuda.enable_mem_efficient_sdp(True)
    """
    _switch(EFFICIENT, enabled)


def mem_efficient_sdp_enabled() -> bool:
    """Whether memory-efficient attention is allowed.

    >>> votive.backends.cuda.mem_efficient_sdp_enabled()
    True
    """
    return EFFICIENT in allowed.on


def enable_math_sdp(enabled: bool) -> None:
    """Allow or forbid attention from single operators.

    >>> votive.backends.cuda.enable_math_sdp(True)
    """
    _switch(MATH, enabled)


def math_sdp_enabled() -> bool:
    """Whether attention from single operators is allowed.

    >>> votive.backends.cuda.math_sdp_enabled()
    True
    """
    return MATH in allowed.on


def enable_cudnn_sdp(enabled: bool) -> None:
    """Allow or forbid cuDNN's attention, in whose place votive's fused kernel runs.

    >>> votive.backends.cuda.enable_cudnn_sdp(True)
    """
    _switch(CUDNN, enabled)


def cudnn_sdp_enabled() -> bool:
    """Whether cuDNN's attention is allowed.

    >>> votive.backends.cuda.cudnn_sdp_enabled()
    True
    """
    return CUDNN in allowed.on


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Allow attention from single operators to add half types in half precision; votive adds in float32 anyway.

    >>> votive.backends.cuda.allow_fp16_bf16_reduction_math_sdp(False)
    """
    global _reduced_math
    _reduced_math = bool(enabled)


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """What `allow_fp16_bf16_reduction_math_sdp` set.

    >>> votive.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()
    False
    """
    return _reduced_math


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[dict[Any, Any]]:
    """Choose the ways of computing attention for a block; `votive.nn.attention.sdpa_kernel` is the newer form.

    >>> with votive.backends.cuda.sdp_kernel(enable_flash=False):
    ...     votive.backends.cuda.flash_sdp_enabled()
    False
    """
    before = allowed.on
    chosen = {MATH: enable_math, FLASH: enable_flash, EFFICIENT: enable_mem_efficient, CUDNN: enable_cudnn}
    # This form knows nothing of kernels that others bring; whoever forbids all three fused ones means those, too.
    rest = before - set(chosen) if enable_flash or enable_mem_efficient or enable_cudnn else frozenset()
    allowed.choose(frozenset(n for n, on in chosen.items() if on) | rest)
    try:
        yield {}
    finally:
        allowed.choose(before)


@dataclass(frozen=True)
class SDPAParams:
    """The arguments of a call of attention, for `can_use_flash_attention` and its like.

    >>> q = votive.ones(1, 1, 2, 4)
    >>> params = votive.backends.cuda.SDPAParams(q, q, q, None, 0.0, False, False)
    >>> votive.backends.cuda.can_use_flash_attention(params)
    True
    """

    query: Any
    key: Any
    value: Any
    attn_mask: Any
    dropout: float
    is_causal: bool
    enable_gqa: bool = False


def _fits(params: SDPAParams, which: int) -> bool:
    return which in allowed.on and params.query.dtype.is_floating_point


def can_use_flash_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether the fused kernel takes these arguments; it takes all that attention does, also on the CPU.

    >>> q = votive.ones(1, 1, 2, 4)
    >>> votive.backends.cuda.can_use_flash_attention(votive.backends.cuda.SDPAParams(q, q, q, None, 0.1, True))
    True
    """
    return _fits(params, FLASH)


def can_use_efficient_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether the fused kernel takes these arguments.

    >>> q = votive.ones(1, 1, 2, 4)
    >>> votive.backends.cuda.can_use_efficient_attention(votive.backends.cuda.SDPAParams(q, q, q, None, 0.1, True))
    True
    """
    return _fits(params, EFFICIENT)


def can_use_cudnn_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether cuDNN could compute attention: votive does not use it for that.

    >>> q = votive.ones(1, 1, 2, 4)
    >>> votive.backends.cuda.can_use_cudnn_attention(votive.backends.cuda.SDPAParams(q, q, q, None, 0.1, True))
    False
    """
    return False


def is_flash_attention_available() -> bool:
    """Whether there is a kernel that keeps no matrix of scores: always.

    >>> votive.backends.cuda.is_flash_attention_available()
    True
    """
    return True


def is_ck_sdpa_available() -> bool:
    """Whether AMD's composable kernels can compute attention: no.

    >>> votive.backends.cuda.is_ck_sdpa_available()
    False
    """
    return False


class _Blas(IntEnum):
    Default = 0
    Cublas = 1
    Cublaslt = 2


class _Linalg(IntEnum):
    Default = 0
    Cusolver = 1


def _preferred(kind: Any, name: str, backend: Any) -> Any:
    if backend is None or isinstance(backend, kind):
        return kind.Default
    found = {member.name.lower(): member for member in kind}.get(str(backend))
    if found is None:
        raise RuntimeError(f"{name}: votive uses {', '.join(m.name.lower() for m in kind)}; got {backend!r}.")
    return kind.Default


def preferred_linalg_library(backend: Any = None) -> Any:
    """The library of decompositions on a GPU. votive chooses cuSOLVER or its own kernels by size, whatever is
    preferred.

    >>> votive.backends.cuda.preferred_linalg_library("cusolver").name
    'Default'
    """
    return _preferred(_Linalg, "preferred_linalg_library", backend)


def preferred_blas_library(backend: Any = None) -> Any:
    """The library of products on a GPU. votive chooses cuBLASLt or its own kernels by shape, whatever is preferred.

    >>> votive.backends.cuda.preferred_blas_library().name
    'Default'
    """
    return _preferred(_Blas, "preferred_blas_library", backend)


class _PlanCache:
    """cuFFT's plans on one device; votive keeps them within a bound of its own."""

    max_size = 0
    size = 0

    def clear(self) -> None:
        """There is nothing to clear: plans are dropped by votive's own bound."""


class _PlanCaches(_PlanCache):
    def __getitem__(self, device: Any) -> _PlanCache:
        return self


cufft_plan_cache = _PlanCaches()
PUBLIC = frozenset(name for name in globals() if not name.startswith("_")) - {
    "CUDNN",
    "EFFICIENT",
    "FLASH",
    "MATH",
    "Any",
    "IntEnum",
    "Iterator",
    "allowed",
    "annotations",
    "contextlib",
    "dataclass",
}
