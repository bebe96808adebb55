"""What diffusion models, schedulers and pipelines give: records that are tuples as well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...tensor import Tensor
from ...utils.output import ModelOutput
from .gaussian import DiagonalGaussianDistribution


@dataclass
class UNetOutput(ModelOutput):
    """What a denoiser predicts, (batch, channels, height, width).

    >>> votive.models.diffusion.UNetOutput(sample=votive.ones(1, 3, 4, 4))[0].shape
    votive.Size([1, 3, 4, 4])
    """

    sample: Tensor | None = None


@dataclass
class DecoderOutput(ModelOutput):
    """Pictures (batch, channels, height, width).

    >>> votive.models.diffusion.DecoderOutput(sample=votive.ones(1, 3, 4, 4)).sample.shape
    votive.Size([1, 3, 4, 4])
    """

    sample: Tensor | None = None


@dataclass
class AutoencoderKLOutput(ModelOutput):
    """Where the latents of pictures lie.

    >>> from votive.models.diffusion import AutoencoderKLOutput, DiagonalGaussianDistribution
    >>> AutoencoderKLOutput(DiagonalGaussianDistribution(votive.zeros(1, 8, 2, 2))).latent_dist.mode().shape
    votive.Size([1, 4, 2, 2])
    """

    latent_dist: DiagonalGaussianDistribution | None = None


@dataclass
class SchedulerOutput(ModelOutput):
    """The sample of the next timestep, and the clean one as predicted now, where the scheduler tells it.

    >>> list(votive.models.diffusion.SchedulerOutput(prev_sample=votive.ones(1)).keys())
    ['prev_sample']
    """

    prev_sample: Tensor | None = None
    pred_original_sample: Tensor | None = None


@dataclass
class LCMSchedulerOutput(ModelOutput):
    """The sample of the next timestep, and it without noise.

    >>> list(votive.models.diffusion.LCMSchedulerOutput(prev_sample=votive.ones(1)).keys())
    ['prev_sample']
    """

    prev_sample: Tensor | None = None
    denoised: Tensor | None = None


@dataclass
class ImagePipelineOutput(ModelOutput):
    """Pictures: a list of PIL's, an array (batch, height, width, channels), or a tensor.

    >>> votive.models.diffusion.ImagePipelineOutput(images=[]).images
    []
    """

    images: Any = None


@dataclass
class StableDiffusionPipelineOutput(ModelOutput):
    """Pictures, and whether a checker found them unfit to show; None where none was asked.

    >>> votive.models.diffusion.StableDiffusionPipelineOutput(images=[]).nsfw_content_detected
    """

    images: Any = None
    nsfw_content_detected: list[bool] | None = None


@dataclass
class StableDiffusionXLPipelineOutput(ModelOutput):
    """Pictures.

    >>> votive.models.diffusion.StableDiffusionXLPipelineOutput(images=[]).images
    []
    """

    images: Any = None
