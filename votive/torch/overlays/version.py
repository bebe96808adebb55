"""`torch.version`: what a program prints to say which build it ran on."""

from __future__ import annotations

from ..version import VERSION, TorchVersion

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

__version__ = TorchVersion(VERSION)
debug = False
cuda: str | None = None
git_version = "votive"
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
