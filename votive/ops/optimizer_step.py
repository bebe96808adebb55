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
    lists = [
        part.split()[1] for part in schema[len(name) + 1 :].split(", ") if part.startswith("Tensor")
    ]

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
                fail(
                    ShapeError, name,
                    f"a parameter of shape {p.shape} got a gradient of shape {g.shape}.",
                )  # fmt: skip
            if not p.dtype.is_inexact:
                fail(DtypeError, name, f"parameters must be floating-point, got {p.dtype}.")
        return ()

    structured(
        schema, infer=infer, doc=doc, differentiable=False, n_out=0,
        mutates=tuple(n for n in lists if n != "grads"),
        method=False, namespaces=(), out=False,
    )  # fmt: skip


_writes(
    "_sgd_step(Tensor[] params, Tensor[] grads, Tensor[] momentum_buffers, bool[] fresh, "
    "Scalar lr, Scalar momentum, Scalar dampening, Scalar weight_decay, bool nesterov, "
    "bool maximize)",
    "Stochastic gradient descent with momentum; `fresh` buffers start as the gradient itself.",
)
_writes(
    "_adam_step(Tensor[] params, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, "
    "Tensor[] max_exp_avg_sqs, Tensor[] steps, Scalar lr, Scalar beta1, Scalar beta2, Scalar eps, "
    "Scalar weight_decay, bool amsgrad, bool maximize, bool decoupled_weight_decay)",
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
    "Scalar lr_decay, Scalar eps, Scalar weight_decay, bool maximize)",
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
    infer=_infer_average, differentiable=False, n_out=0, mutates=("averages",),
    method=False, namespaces=(), out=False,
    doc="Move running averages towards values: average + weight * (value - average).",
)  # fmt: skip


def _infer_unscale(grads: Any, inv_scale: Spec) -> Spec:
    for g in grads:
        if not g.dtype.is_inexact:
            fail(DtypeError, "unscale_", f"gradients must be floating-point, got {g.dtype}.")
    device = grads[0].device if grads else inv_scale.device
    return Spec(Layout(()), dt.float32, device)


structured(
    "_unscale_(Tensor[] grads, Tensor inv_scale)",
    infer=_infer_unscale, differentiable=False, mutates=("grads",),
    method=False, namespaces=(), out=False,
    doc="Multiply gradients by a number in place; gives 1 if one of them was inf or NaN, else 0.",
)  # fmt: skip


def _infer_scale(tensors: Any, factor: Spec) -> tuple[Spec, ...]:
    for t in tensors:
        if not t.dtype.is_inexact:
            fail(DtypeError, "scale_", f"tensors must be floating-point, got {t.dtype}.")
        if has_overlap(t.shape, t.strides):
            fail(
                RuntimeError, "scale_",
                "more than one element of a written-to tensor refers to a single memory location; "
                "clone() the tensor first.",
            )  # fmt: skip
    return ()


structured(
    "_scale_(Tensor[] tensors, Tensor factor)",
    infer=_infer_scale, differentiable=False, n_out=0, mutates=("tensors",),
    method=False, namespaces=(), out=False,
    doc="Multiply tensors by a 0-d tensor in place.",
)  # fmt: skip


def _infer_total_norm(tensors: Any, ord: float) -> Spec:
    kind = tensors[0].dtype.to_real()
    for t in tensors:
        if not t.dtype.is_inexact or t.dtype in dt.FLOAT8:
            fail(
                DtypeError, "linalg.vector_norm",
                f"takes floating-point and complex tensors, got {t.dtype}; cast it with .to().",
            )  # fmt: skip
        if (ord < 0 or ord == math.inf) and t.numel == 0:
            fail(
                ShapeError, "linalg.vector_norm",
                f"the norm of order {ord} has no value for no elements, got shape {t.shape}.",
            )  # fmt: skip
        kind = promote_types(kind, t.dtype.to_real())
    return Spec(Layout(()), kind, tensors[0].device)


structured(
    "_total_norm(Tensor[] tensors, float ord)",
    infer=_infer_total_norm, differentiable=False,
    method=False, namespaces=(), out=False,
    doc="The norm of the norms of tensors, each of which is rounded to its tensor's type.",
)  # fmt: skip
