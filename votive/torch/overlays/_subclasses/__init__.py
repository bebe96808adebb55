"""`torch._subclasses`: the tensors that torch's tracers compute shapes with; votive has the device "meta" for that."""

from __future__ import annotations

from .fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["FakeTensor", "FakeTensorMode"]
