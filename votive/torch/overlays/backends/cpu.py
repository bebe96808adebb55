"""`torch.backends.cpu`."""

from __future__ import annotations

from ....backends.cpu.native import loader

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """The instructions that kernels use: "AVX512", "AVX2" or "DEFAULT"."""
    name = getattr(loader.module, "__name__", "")
    return "AVX512" if "avx512" in name else "AVX2" if "avx2" in name else "DEFAULT"
