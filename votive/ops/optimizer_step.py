"""Optimizer steps over whole groups of parameters: one call updates all of them in place.

Declares what each step reads and writes; the formulas stand in the kernels of the same stem. The
lists run in parallel: the i-th entry of each belongs to the i-th parameter.
"""

from __future__ import annotations

import math
from typing import Any

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, fail
from ..core.layout import Layout, Spec, has_overlap
from ..core.promotion import promote_types
from .registry import structured


def _writes(schema: str, doc: str) -> None:
    """Declare a step that gives nothing back and writes every list except the gradients."""
    name = schema[: schema.index("(")]
    lists = [part.split()[1] for part in schema[len(name) + 1 :].split(", ") if part.startswith("Tensor[]")]

    def infer(*args: Any) -> tuple[Spec, ...]:
        params, grads = args[0], args[1]
        for listed in args[2 : len(lists)]:
            # A list that the options make superfluous comes empty.
            if listed and len(listed) != len(params):
                fail(ShapeError, name, f"{len(params)} parameters, but {len(listed)} states.")
        if len(grads) != len(params):
            fail(ShapeError, name, f"{len(params)} parameters, but {len(grads)} gradients.")
        for p, g in zip(params, grads, strict=True):
            if p.shape != g.shape:
                fail(ShapeError, name, f"a parameter of shape {p.shape} got a gradient of shape {g.shape}.")
            if not p.dtype.is_inexact:
                fail(DtypeError, name, f"parameters must be floating-point, got {p.dtype}.")
        return ()

    structured(
        schema, infer=infer, doc=doc, differentiable=False, n_out=0, mutates=tuple(n for n in lists if n != "grads")
    )


# What a GradScaler leaves to the step: gradients are divided by `grad_scale`, in place too, and
# nothing at all is written, nor counted, where `found_inf` is not zero.
_SCALING = "Tensor? grad_scale=None, Tensor? found_inf=None"

_writes(
    "_sgd_step(Tensor[] params, Tensor[] grads, Tensor[] momentum_buffers, bool[] fresh, "
    "Scalar lr, Scalar momentum, Scalar dampening, Scalar weight_decay, bool nesterov, "
    f"bool maximize, {_SCALING})",
    "Stochastic gradient descent with momentum; `fresh` buffers start as the gradient itself.",
)
_writes(
    "_adam_step(Tensor[] params, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, "
    "Tensor[] max_exp_avg_sqs, Tensor[] steps, Scalar lr, Scalar beta1, Scalar beta2, Scalar eps, "
    f"Scalar weight_decay, bool amsgrad, bool maximize, bool decoupled_weight_decay, {_SCALING})",
    "Adam; with decoupled weight decay, AdamW.",
)
_writes(
    "_rmsprop_step(Tensor[] params, Tensor[] grads, Tensor[] square_avgs, Tensor[] grad_avgs, "
    "Tensor[] momentum_buffers, Tensor[] steps, Scalar lr, Scalar alpha, Scalar eps, "
    "Scalar weight_decay, Scalar momentum, bool centered, bool maximize)",
    "RMSprop, optionally centered and with momentum.",
)
_writes(
    "_adagrad_step(Tensor[] params, Tensor[] grads, Tensor[] sums, Tensor[] steps, Scalar lr, "
    f"Scalar lr_decay, Scalar eps, Scalar weight_decay, bool maximize, {_SCALING})",
    "Adagrad.",
)
_writes(
    "_adadelta_step(Tensor[] params, Tensor[] grads, Tensor[] square_avgs, Tensor[] acc_deltas, "
    "Tensor[] steps, Scalar lr, Scalar rho, Scalar eps, Scalar weight_decay, bool maximize)",
    "Adadelta.",
)
_writes(
    "_adamax_step(Tensor[] params, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_infs, "
    "Tensor[] steps, Scalar lr, Scalar beta1, Scalar beta2, Scalar eps, Scalar weight_decay, "
    "bool maximize)",
    "Adamax: Adam with the infinity norm.",
)
_writes(
    "_nadam_step(Tensor[] params, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, "
    "Tensor[] mu_products, Tensor[] steps, Scalar lr, Scalar beta1, Scalar beta2, Scalar eps, "
    "Scalar weight_decay, Scalar momentum_decay, bool decoupled_weight_decay, bool maximize)",
    "Adam with Nesterov momentum.",
)
_writes(
    "_radam_step(Tensor[] params, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, "
    "Tensor[] steps, Scalar lr, Scalar beta1, Scalar beta2, Scalar eps, Scalar weight_decay, "
    "bool decoupled_weight_decay, bool maximize)",
    "Rectified Adam.",
)
_writes(
    "_lion_step(Tensor[] params, Tensor[] grads, Tensor[] exp_avgs, Scalar lr, Scalar beta1, "
    "Scalar beta2, Scalar weight_decay, bool maximize)",
    "Lion: the sign of an interpolated momentum.",
)
_writes(
    "_rprop_step(Tensor[] params, Tensor[] grads, Tensor[] prevs, Tensor[] step_sizes, "
    "Tensor[] steps, Scalar eta_minus, Scalar eta_plus, Scalar step_size_min, "
    "Scalar step_size_max, bool maximize)",
    "Resilient backpropagation.",
)
_writes(
    "_asgd_step(Tensor[] params, Tensor[] grads, Tensor[] axs, Tensor[] mus, Tensor[] etas, "
    "Tensor[] steps, Scalar lr, Scalar lambd, Scalar alpha, Scalar t0, Scalar weight_decay, "
    "bool maximize)",
    "Averaged stochastic gradient descent.",
)


def _infer_average(averages: Any, values: Any, weight: Any) -> tuple[Spec, ...]:
    for a, v in zip(averages, values, strict=True):
        if a.shape != v.shape:
            fail(ShapeError, "average_step", f"shapes differ: {a.shape} and {v.shape}.")
    return ()


structured(
    "_average_step(Tensor[] averages, Tensor[] values, Scalar weight)",
    infer=_infer_average,
    differentiable=False,
    n_out=0,
    mutates=("averages",),
    doc="Move running averages towards values: average + weight * (value - average).",
)


_CHECK = "_amp_foreach_non_finite_check_and_unscale_"


def _infer_check(grads: Any, found_inf: Spec, inv_scale: Spec) -> tuple[Spec, ...]:
    for name, x in (("found_inf", found_inf), ("inv_scale", inv_scale)):
        if x.numel != 1 or x.dtype is not dt.float32:
            fail(RuntimeError, _CHECK, f"{name} must be a float32 tensor of one element, got {x.dtype} of {x.shape}.")
    for g in grads:
        if not g.dtype.is_floating_point:
            fail(DtypeError, _CHECK, f"gradients must be floating-point, got {g.dtype}.")
    return ()


structured(
    f"{_CHECK}(Tensor[] grads, Tensor found_inf, Tensor inv_scale)",
    infer=_infer_check,
    differentiable=False,
    n_out=0,
    mutates=("grads", "found_inf"),
    doc="Multiply gradients by a number in place; sets found_inf to 1 if one was inf or NaN.",
)


def _infer_update(scale: Spec, tracker: Spec, found_inf: Spec, *numbers: Any) -> tuple[Spec, ...]:
    wanted = ((scale, dt.float32), (tracker, dt.int32), (found_inf, dt.float32))
    for name, (x, dtype) in zip(("scale", "growth_tracker", "found_inf"), wanted, strict=True):
        if x.numel != 1 or x.dtype is not dtype:
            fail(
                RuntimeError,
                "_amp_update_scale_",
                f"{name} must be a {dtype} tensor of one element, got {x.dtype} of {x.shape}.",
            )
    return ()


structured(
    "_amp_update_scale_(Tensor scale, Tensor growth_tracker, Tensor found_inf, "
    "Scalar growth_factor, Scalar backoff_factor, Scalar growth_interval)",
    infer=_infer_update,
    differentiable=False,
    n_out=0,
    mutates=("scale", "growth_tracker"),
    doc="Shrink a scale where found_inf is not zero; else count, and let it grow at an interval.",
)


def _infer_scale(tensors: Any, factor: Spec) -> tuple[Spec, ...]:
    for t in tensors:
        if not t.dtype.is_inexact:
            fail(DtypeError, "scale_", f"tensors must be floating-point, got {t.dtype}.")
        if has_overlap(t.shape, t.strides):
            fail(
                RuntimeError,
                "scale_",
                "more than one element of a written-to tensor refers to a single memory location; "
                "clone() the tensor first.",
            )
    return ()


structured(
    "_scale_(Tensor[] tensors, Tensor factor)",
    infer=_infer_scale,
    differentiable=False,
    n_out=0,
    mutates=("tensors",),
    doc="Multiply tensors by a 0-d tensor in place.",
)


def _infer_total_norm(tensors: Any, ord: float) -> Spec:
    kind = tensors[0].dtype.to_real()
    for t in tensors:
        if not t.dtype.is_inexact or t.dtype in dt.FLOAT8:
            fail(
                DtypeError,
                "linalg.vector_norm",
                f"takes floating-point and complex tensors, got {t.dtype}; cast it with .to().",
            )
        if (ord < 0 or ord == math.inf) and t.numel == 0:
            fail(
                ShapeError,
                "linalg.vector_norm",
                f"the norm of order {ord} has no value for no elements, got shape {t.shape}.",
            )
        kind = promote_types(kind, t.dtype.to_real())
    return Spec(Layout(()), kind, tensors[0].device)


structured(
    "_total_norm(Tensor[] tensors, float ord)",
    infer=_infer_total_norm,
    differentiable=False,
    doc="The norm of the norms of tensors, each of which is rounded to its tensor's type.",
)
