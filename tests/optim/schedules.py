"""The schedules with their options, each as a function of a library and its optimizer."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

Make = Callable[[Any, Any], Any]


class Power:
    """A callable object, whose attributes checkpoints keep."""

    def __init__(self, base: float) -> None:
        self.base = base

    def __call__(self, epoch: int) -> float:
        return self.base**epoch


def _chain(lr: Any, opt: Any) -> Any:
    return lr.ChainedScheduler([lr.LinearLR(opt, 0.2, total_iters=10), lr.ExponentialLR(opt, 0.95)])


def _sequence(lr: Any, opt: Any) -> Any:
    parts = [lr.LinearLR(opt, 0.1, total_iters=8), lr.CosineAnnealingLR(opt, 20), lr.StepLR(opt, 5)]
    return lr.SequentialLR(opt, parts, [8, 30])


def _nested(lr: Any, opt: Any) -> Any:
    inner = lr.SequentialLR(opt, [lr.ConstantLR(opt, 0.5, 3), lr.ExponentialLR(opt, 0.9)], milestones=[4])
    with warnings.catch_warnings():
        # A sequence steps its first part once more when it is made; both libraries warn of order.
        warnings.simplefilter("ignore")
        return lr.SequentialLR(opt, [inner, lr.PolynomialLR(opt, 20, 2.0)], milestones=[15])


SCHEDULES: dict[str, Make] = {
    "lambda": lambda lr, o: lr.LambdaLR(o, lambda e: 0.95**e),
    "lambda each": lambda lr, o: lr.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (1 + e)]),
    "lambda object": lambda lr, o: lr.LambdaLR(o, [Power(0.9), Power(0.8)]),
    "multiplicative": lambda lr, o: lr.MultiplicativeLR(o, lambda e: 0.95 if e % 3 else 1.1),
    "step": lambda lr, o: lr.StepLR(o, 7, 0.3),
    "multistep": lambda lr, o: lr.MultiStepLR(o, [3, 10, 10, 30], 0.5),
    "constant": lambda lr, o: lr.ConstantLR(o, 0.25, 6),
    "constant default": lambda lr, o: lr.ConstantLR(o),
    "linear": lambda lr, o: lr.LinearLR(o, 0.1, 0.7, 20),
    "linear default": lambda lr, o: lr.LinearLR(o),
    "exponential": lambda lr, o: lr.ExponentialLR(o, 0.93),
    "polynomial": lambda lr, o: lr.PolynomialLR(o, 30, 1.7),
    "polynomial default": lambda lr, o: lr.PolynomialLR(o),
    "cosine": lambda lr, o: lr.CosineAnnealingLR(o, 12, 0.01),
    "cosine long": lambda lr, o: lr.CosineAnnealingLR(o, 50),
    "restarts": lambda lr, o: lr.CosineAnnealingWarmRestarts(o, 6),
    "restarts longer": lambda lr, o: lr.CosineAnnealingWarmRestarts(o, 4, 2, 0.02),
    "cyclic": lambda lr, o: lr.CyclicLR(o, 0.01, 0.5, 7),
    "cyclic lists": lambda lr, o: lr.CyclicLR(
        o, [0.01, 0.02], [0.5, 0.3], 5, 9, "triangular2", base_momentum=0.7, max_momentum=[0.9, 0.8]
    ),
    "cyclic exp": lambda lr, o: lr.CyclicLR(o, 0.01, 0.5, 4, mode="exp_range", gamma=0.97, cycle_momentum=False),
    "cyclic function": lambda lr, o: lr.CyclicLR(o, 0.01, 0.5, 4, scale_fn=lambda x: 0.8**x, scale_mode="iterations"),
    "onecycle": lambda lr, o: lr.OneCycleLR(o, 0.7, total_steps=60),
    "onecycle three": lambda lr, o: lr.OneCycleLR(
        o,
        [0.7, 0.2],
        epochs=6,
        steps_per_epoch=10,
        three_phase=True,
        anneal_strategy="linear",
        pct_start=0.4,
        div_factor=10.0,
        final_div_factor=50.0,
    ),
    "onecycle still": lambda lr, o: lr.OneCycleLR(o, 0.7, total_steps=60, cycle_momentum=False),
    "sequential": _sequence,
    "nested": _nested,
    "chained": _chain,
}
