"""Parts of pictures painted anew after texts: Stable Diffusion where a mask is white.

Of a denoiser with nine channels, which sees the mask and the rest, and of a usual one, for which the rest is put back
after each step. Names and order of arguments are diffusers'.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import votive
from votive.nn import functional as F

from ...tensor import Tensor
from .gaussian import Generators, randn
from .output import StableDiffusionPipelineOutput
from .pictures import check_output_type, read, read_mask
from .schedulers.base import Scheduler
from .scheduling import set_timesteps
from .stable_diffusion import Callback
from .stable_diffusion_img2img import StableDiffusionImg2ImgPipeline, later
from .text_denoising import TextDenoising
from .texts import Texts


class StableDiffusionInpaintPipeline(StableDiffusionImg2ImgPipeline):
    """Pictures whose masked part shows what a text says; with `strength` below 1 something of it stays.

    >>> from votive.models.diffusion import StableDiffusionInpaintPipeline
    >>> "mask" in StableDiffusionInpaintPipeline.tensors
    True
    """

    tensors = ("latents", "prompt_embeds", "negative_prompt_embeds", "mask", "masked_image_latents")

    def denoise(  # type: ignore[override]
        self,
        prompt: Texts = None,
        image: Any = None,
        mask_image: Any = None,
        masked_image_latents: Tensor | None = None,
        height: int | None = None,
        width: int | None = None,
        strength: float = 1.0,
        num_inference_steps: int = 50,
        timesteps: list[int] | None = None,
        sigmas: list[float] | None = None,
        guidance_scale: float = 7.5,
        negative_prompt: Texts = None,
        num_images_per_prompt: int = 1,
        eta: float = 0.0,
        generator: Generators = None,
        latents: Tensor | None = None,
        prompt_embeds: Tensor | None = None,
        negative_prompt_embeds: Tensor | None = None,
        cross_attention_kwargs: Mapping[str, Any] | None = None,
        clip_skip: int | None = None,
        grad: bool = False,
        *,
        scheduler: Scheduler | None = None,
    ) -> TextDenoising:
        """A run that waits before each timestep, with a copy of the scheduler, or with the one given."""
        keep, name = self.scheduler, type(self).__name__
        if image is None or mask_image is None:
            raise ValueError(f"{name}: give an image, and a mask_image that is white where it is painted anew.")
        if not 0 <= strength <= 1:
            raise ValueError(f"{name}: strength must be 0 to 1, got {strength}.")
        channels = self.vae.config.latent_channels
        sees = self.unet.config.in_channels == 2 * channels + 1
        if not sees and self.unet.config.in_channels != channels:
            raise ValueError(
                f"{name}: the denoiser has {self.unet.config.in_channels} channels; {channels} or {2 * channels + 1} "
                "are known."
            )
        height, width = self._sides(height, width)
        guided = guidance_scale > 1 and self.unet.config.time_cond_proj_dim is None
        try:
            self.scheduler = copy.deepcopy(keep) if scheduler is None else scheduler
            with votive.set_grad_enabled(grad and votive.is_grad_enabled()):
                positive, negative = self.encode_prompt(
                    prompt, None, num_images_per_prompt, guided, negative_prompt, prompt_embeds,
                    negative_prompt_embeds, clip_skip,
                )  # fmt: skip
                steps = set_timesteps(self.scheduler, num_inference_steps, self.device, timesteps, sigmas)
                steps = later(self.scheduler, steps, strength)
                if len(steps) < 1:
                    raise ValueError(
                        f"{name}: strength={strength} of {num_inference_steps} steps leaves none; raise one of them."
                    )
                factor, count = self.vae_scale_factor, positive.shape[0]
                picture = read(image, factor, channels, height, width)
                mask = read_mask(mask_image, height, width)
                whole = None
                if not sees or (latents is None and strength < 1):
                    whole = self._latents_of(picture, count, positive, generator)
                noise = latents
                if noise is None:
                    shape = (count, channels, height // factor, width // factor)
                    noise = randn(shape, generator, self.device, positive.dtype)
                noise = noise.to(self.device)
                if latents is None and strength < 1:
                    first = self.scheduler.add_noise(whole, noise, steps[:1].repeat(count))
                else:
                    first = noise * self.scheduler.init_noise_sigma
                run = self._run_of(
                    first, steps, positive, negative, guidance_scale, 0.0, eta, generator, cross_attention_kwargs, grad
                )
                small = F.interpolate(mask, size=(height // factor, width // factor)).to(self.device, positive.dtype)
                run.mask = self._for_each(small, count)
                if sees:
                    rest = masked_image_latents
                    if rest is None and picture.shape[1] == channels:
                        raise ValueError(f"{name}: latents came as image; give masked_image_latents with them.")
                    rest = picture * (mask < 0.5).to(picture.dtype) if rest is None else rest
                    run.masked_image_latents = self._latents_of(rest, count, positive, generator)
                else:
                    run.image_latents, run.first_noise = whole, noise
                return run
        finally:
            self.scheduler = keep

    @votive.no_grad()
    def __call__(
        self,
        prompt: Texts = None,
        image: Any = None,
        mask_image: Any = None,
        masked_image_latents: Tensor | None = None,
        height: int | None = None,
        width: int | None = None,
        strength: float = 1.0,
        num_inference_steps: int = 50,
        timesteps: list[int] | None = None,
        sigmas: list[float] | None = None,
        guidance_scale: float = 7.5,
        negative_prompt: Texts = None,
        num_images_per_prompt: int = 1,
        eta: float = 0.0,
        generator: Generators = None,
        latents: Tensor | None = None,
        prompt_embeds: Tensor | None = None,
        negative_prompt_embeds: Tensor | None = None,
        output_type: str = "pil",
        return_dict: bool = True,
        cross_attention_kwargs: Mapping[str, Any] | None = None,
        clip_skip: int | None = None,
        callback_on_step_end: Callback | None = None,
        callback_on_step_end_tensor_inputs: tuple[str, ...] | list[str] = ("latents",),
    ) -> StableDiffusionPipelineOutput | tuple[Any, list[bool] | None]:
        """Pictures of `image` with what `prompt` says where `mask_image` is white; see `StableDiffusionPipeline`."""
        check_output_type(type(self).__name__, output_type)
        self._check_callback(callback_on_step_end_tensor_inputs)
        run = self.denoise(
            prompt, image, mask_image, masked_image_latents, height, width, strength, num_inference_steps, timesteps,
            sigmas, guidance_scale, negative_prompt, num_images_per_prompt, eta, generator, latents, prompt_embeds,
            negative_prompt_embeds, cross_attention_kwargs, clip_skip, scheduler=self.scheduler,
        )  # fmt: skip
        found, unfit = self._through(run, output_type, callback_on_step_end, callback_on_step_end_tensor_inputs)
        if not return_dict:
            return found, unfit
        return StableDiffusionPipelineOutput(images=found, nsfw_content_detected=unfit)

    def _latents_of(self, pictures: Tensor, count: int, like: Tensor, generator: Generators) -> Tensor:
        """Latents of pictures, or latents as they are, one for each text."""
        pictures = pictures.to(device=self.device, dtype=like.dtype)
        found = pictures
        if pictures.shape[1] != self.vae.config.latent_channels:
            if isinstance(generator, list | tuple):
                pictures = self._for_each(pictures, count)
            found = self._encoded(pictures, generator)
        return self._for_each(found, count)

    def _for_each(self, x: Tensor, count: int) -> Tensor:
        if count % x.shape[0]:
            raise ValueError(f"{type(self).__name__}: {x.shape[0]} pictures or masks do not go into {count} texts.")
        return votive.cat([x] * (count // x.shape[0])) if x.shape[0] < count else x
