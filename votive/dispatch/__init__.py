"""The one way from an operator to a kernel: normalise, plan, run, record, observe.

A plan is built at the first call with given layouts and static arguments and found by key later. Calls that are not
unusual in any way take the same steps in the native class of operators.
Knows neither formulas' content nor devices' internals; autograd and Tensor plug in from above.
"""

from . import autocast, compiled, forms  # noqa: F401 - they fill in what operators leave to the dispatcher
from .arguments import as_dtype
from .build import drop_plans, find, forgettable, kernel_for, plan_of, prepare
from .execute import execute, install, run
from .forms import check_writable, private_copy, refuse_grad, with_foreign, write_out, write_over
from .observe import Call, Observer, attach, detach, refresh, was_made, was_read
from .overrides import disabled, prepare_class
from .plan import KernelPlan, Plan, PointwisePlan, StructuredPlan, ViewPlan, make
from .state import state

__all__ = [
    "Call", "KernelPlan", "Observer", "Plan", "PointwisePlan", "StructuredPlan", "ViewPlan", "as_dtype", "attach",
    "check_writable", "detach", "disabled", "drop_plans", "execute", "find", "forgettable", "install", "kernel_for",
    "make", "plan_of", "prepare", "prepare_class", "private_copy", "refresh", "refuse_grad", "run", "state", "was_made",
    "was_read", "with_foreign", "write_out", "write_over",
]  # fmt: skip
