"""Learning-rate schedules, as `torch.optim.lr_scheduler`; one file per idea."""

from .base import LRScheduler
from .compose import ChainedScheduler, SequentialLR
from .cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts, CosineWithWarmup, get_cosine_schedule_with_warmup
from .cycle import CyclicLR, OneCycleLR
from .decay import ConstantLR, ExponentialLR, LinearLR, MultiStepLR, PolynomialLR, StepLR
from .function import LambdaLR, MultiplicativeLR
from .plateau import ReduceLROnPlateau

_LRScheduler = LRScheduler

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CosineWithWarmup",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
    "get_cosine_schedule_with_warmup",
]
