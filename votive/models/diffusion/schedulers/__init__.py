"""Schedulers: at which timesteps a denoiser is asked, and what its answers make of a sample. Know no models."""

from __future__ import annotations

from .base import AlphaScheduler, Scheduler
from .ddim import DDIMScheduler
from .ddpm import DDPMScheduler
from .dpmsolver import DPMSolverMultistepScheduler
from .euler import EulerAncestralDiscreteScheduler, EulerDiscreteScheduler
from .flow_match_euler import FlowMatchEulerDiscreteScheduler
from .heun import HeunDiscreteScheduler
from .lcm import LCMScheduler
from .lms import LMSDiscreteScheduler
from .pndm import PNDMScheduler
from .unipc import UniPCMultistepScheduler

__all__ = [
    "AlphaScheduler", "DDIMScheduler", "DDPMScheduler", "DPMSolverMultistepScheduler",
    "EulerAncestralDiscreteScheduler", "EulerDiscreteScheduler", "FlowMatchEulerDiscreteScheduler",
    "HeunDiscreteScheduler", "LCMScheduler", "LMSDiscreteScheduler", "PNDMScheduler", "Scheduler",
    "UniPCMultistepScheduler",
]  # fmt: skip
