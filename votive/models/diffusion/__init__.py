"""Diffusion: denoisers, autoencoders, schedulers and pipelines, with diffusers' names, files and numbers.

A name is read when it is first asked for; nothing else in the package needs any of this.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .auto import AutoPipelineForImage2Image as AutoPipelineForImage2Image
    from .auto import AutoPipelineForInpainting as AutoPipelineForInpainting
    from .auto import AutoPipelineForText2Image as AutoPipelineForText2Image
    from .autoencoder_kl import AutoencoderKL as AutoencoderKL
    from .denoising import Denoising as Denoising
    from .gaussian import DiagonalGaussianDistribution as DiagonalGaussianDistribution
    from .pipeline import DiffusionPipeline as DiffusionPipeline
    from .safety_checker import StableDiffusionSafetyChecker as StableDiffusionSafetyChecker
    from .stable_diffusion import StableDiffusionPipeline as StableDiffusionPipeline
    from .stable_diffusion_img2img import StableDiffusionImg2ImgPipeline as StableDiffusionImg2ImgPipeline
    from .stable_diffusion_inpaint import StableDiffusionInpaintPipeline as StableDiffusionInpaintPipeline
    from .stable_diffusion_xl import StableDiffusionXLPipeline as StableDiffusionXLPipeline
    from .stable_diffusion_xl_img2img import StableDiffusionXLImg2ImgPipeline as StableDiffusionXLImg2ImgPipeline
    from .text_denoising import TextDenoising as TextDenoising
    from .unconditional import DDIMPipeline as DDIMPipeline
    from .unconditional import DDPMPipeline as DDPMPipeline
    from .unet_2d import UNet2DModel as UNet2DModel
    from .unet_2d_condition import UNet2DConditionModel as UNet2DConditionModel

# Files, and the public names in them.
_FILES = {
    "auto": ("AutoPipelineForImage2Image", "AutoPipelineForInpainting", "AutoPipelineForText2Image"),
    "autoencoder_kl": ("AutoencoderKL",),
    "denoising": ("Denoising",),
    "gaussian": ("DiagonalGaussianDistribution",),
    "model": ("DiffusionModel",),
    "output": (
        "AutoencoderKLOutput", "DecoderOutput", "ImagePipelineOutput", "LCMSchedulerOutput", "SchedulerOutput",
        "StableDiffusionPipelineOutput", "StableDiffusionXLPipelineOutput", "UNetOutput",
    ),
    "pipeline": ("DiffusionPipeline",),
    "safety_checker": ("StableDiffusionSafetyChecker",),
    "schedulers": (
        "DDIMScheduler", "DDPMScheduler", "DPMSolverMultistepScheduler", "EulerAncestralDiscreteScheduler",
        "EulerDiscreteScheduler", "FlowMatchEulerDiscreteScheduler", "HeunDiscreteScheduler", "LCMScheduler",
        "LMSDiscreteScheduler", "PNDMScheduler", "Scheduler", "UniPCMultistepScheduler",
    ),
    "settings": ("Settings",),
    "stable_diffusion": ("StableDiffusionPipeline",),
    "stable_diffusion_img2img": ("StableDiffusionImg2ImgPipeline",),
    "stable_diffusion_inpaint": ("StableDiffusionInpaintPipeline",),
    "stable_diffusion_xl": ("StableDiffusionXLPipeline",),
    "stable_diffusion_xl_img2img": ("StableDiffusionXLImg2ImgPipeline",),
    "text_denoising": ("TextDenoising",),
    "unconditional": ("DDIMPipeline", "DDPMPipeline"),
    "unet_2d": ("UNet2DModel",),
    "unet_2d_condition": ("UNet2DConditionModel",),
}  # fmt: skip
_NAMES = {name: file for file, names in _FILES.items() for name in names}

__all__ = [*_NAMES]


def __getattr__(name: str) -> object:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f".{_NAMES[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
