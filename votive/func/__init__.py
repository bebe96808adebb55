"""Functions of functions: vmap, gradients of any order, Jacobians, tangents, and modules as functions."""

from . import batch_rules as _batch_rules  # noqa: F401 - registers rules
from . import interpret as _interpret  # noqa: F401 - tells the dispatcher what becomes of wrapped tensors
from .derivatives import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from .modules import debug_unwrap, functional_call, functionalize, replace_all_batch_norm_modules_, stack_module_state
from .vectorize import vmap

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
