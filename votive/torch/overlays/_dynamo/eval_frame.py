"""`torch._dynamo.eval_frame`: the class of modules that `torch.compile` gives."""

from __future__ import annotations

from ....nn.compiled import CompiledModule as OptimizedModule
from . import disable, is_dynamo_supported

__all__ = ["OptimizedModule", "disable", "is_dynamo_supported"]
