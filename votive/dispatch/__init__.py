"""The one way from a function to a kernel: normalise, infer, plan, record, launch, observe.

A plan is built at the first call with given specs and static arguments and found by identity later.
Knows neither formulas' content nor devices' internals; autograd and Tensor plug in from above.
"""

from .call import binary, call, execute, install, unary, with_foreign
from .normalise import as_dtype
from .observe import Call, Observer, attach, detach, refresh_hooks, was_read
from .plan import Plan, drop_plans, forgettable, prepare, remembering, shortened
from .state import make, state
from .write import call_inplace, call_out, check_writable, private_copy, refuse_grad, write_out

__all__ = [
    "Call", "Observer", "Plan", "as_dtype", "attach", "binary", "call", "call_inplace", "call_out",
    "check_writable", "detach", "drop_plans", "execute", "forgettable", "install", "make",
    "prepare", "private_copy", "refresh_hooks", "refuse_grad", "remembering", "shortened", "state",
    "unary", "was_read", "with_foreign", "write_out",
]  # fmt: skip
