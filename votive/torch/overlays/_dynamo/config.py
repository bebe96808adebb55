"""`torch._dynamo.config`: settings that programs write and read back; votive's compiler has none of them."""

from __future__ import annotations

__all__ = [
    "accumulated_cache_size_limit",
    "accumulated_recompile_limit",
    "assume_static_by_default",
    "automatic_dynamic_shapes",
    "cache_size_limit",
    "capture_dynamic_output_shape_ops",
    "capture_scalar_outputs",
    "compiled_autograd",
    "guard_nn_modules",
    "inline_inbuilt_nn_modules",
    "optimize_ddp",
    "recompile_limit",
    "skip_fwd_side_effects_in_bwd_under_checkpoint",
    "suppress_errors",
    "verbose",
]

accumulated_cache_size_limit = accumulated_recompile_limit = 256
assume_static_by_default = True
automatic_dynamic_shapes = True
cache_size_limit = recompile_limit = 8
capture_dynamic_output_shape_ops = False
capture_scalar_outputs = False
compiled_autograd = False
guard_nn_modules = True
inline_inbuilt_nn_modules = True
optimize_ddp: bool | str = True
skip_fwd_side_effects_in_bwd_under_checkpoint = False
suppress_errors = False
verbose = False
