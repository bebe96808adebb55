"""`torch.torch_version`."""

from __future__ import annotations

from ..version import VERSION, TorchVersion

__all__ = ["TorchVersion", "__version__"]

__version__ = TorchVersion(VERSION)
