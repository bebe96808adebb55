"""Pictures of texts that begin with a picture: Stable Diffusion from somewhere on the way.

Meng et al. 2021 (SDEdit), arXiv:2108.01073. Names and order of arguments are diffusers'.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import votive

from ...tensor import Tensor
from .gaussian import Generators, randn
from .output import StableDiffusionPipelineOutput
from .pictures import check_output_type, read
from .scheduling import set_timesteps
from .stable_diffusion import Callback, StableDiffusionPipeline
from .text_denoising import TextDenoising
from .texts import Texts


class StableDiffusionImg2ImgPipeline(StableDiffusionPipeline):
    """Pictures of texts that keep something of a given one: the less, the nearer `strength` is to 1.

    >>> from votive.models.diffusion import StableDiffusionImg2ImgPipeline, StableDiffusionPipeline
    >>> StableDiffusionImg2ImgPipeline.parts == StableDiffusionPipeline.parts
    True
    """

    @votive.no_grad()
    def __call__(
        self,
        prompt: Texts = None,
        image: Any = None,
        strength: float = 0.8,
        num_inference_steps: int = 50,
        timesteps: list[int] | None = None,
        sigmas: list[float] | None = None,
        guidance_scale: float = 7.5,
        negative_prompt: Texts = None,
        num_images_per_prompt: int = 1,
        eta: float = 0.0,
        generator: Generators = None,
        prompt_embeds: Tensor | None = None,
        negative_prompt_embeds: Tensor | None = None,
        output_type: str = "pil",
        return_dict: bool = True,
        cross_attention_kwargs: Mapping[str, Any] | None = None,
        clip_skip: int | None = None,
        callback_on_step_end: Callback | None = None,
        callback_on_step_end_tensor_inputs: tuple[str, ...] | list[str] = ("latents",),
    ) -> StableDiffusionPipelineOutput | tuple[Any, list[bool] | None]:
        """Pictures of `prompt` that begin with `image`; see `StableDiffusionPipeline` for the others."""
        check_output_type(type(self).__name__, output_type)
        self._check_callback(callback_on_step_end_tensor_inputs)
        run = self._begin_at(
            prompt, image, strength, num_inference_steps, timesteps, sigmas, guidance_scale, negative_prompt,
            num_images_per_prompt, eta, generator, prompt_embeds, negative_prompt_embeds, cross_attention_kwargs,
            clip_skip, False,
        )  # fmt: skip
        found, unfit = self._through(run, output_type, callback_on_step_end, callback_on_step_end_tensor_inputs)
        if not return_dict:
            return found, unfit
        return StableDiffusionPipelineOutput(images=found, nsfw_content_detected=unfit)

    def denoise(  # type: ignore[override]
        self,
        prompt: Texts = None,
        image: Any = None,
        strength: float = 0.8,
        num_inference_steps: int = 50,
        timesteps: list[int] | None = None,
        sigmas: list[float] | None = None,
        guidance_scale: float = 7.5,
        negative_prompt: Texts = None,
        num_images_per_prompt: int = 1,
        eta: float = 0.0,
        generator: Generators = None,
        prompt_embeds: Tensor | None = None,
        negative_prompt_embeds: Tensor | None = None,
        cross_attention_kwargs: Mapping[str, Any] | None = None,
        clip_skip: int | None = None,
        grad: bool = False,
    ) -> TextDenoising:
        """A run that waits before each timestep, with a scheduler of its own."""
        keep = self.scheduler
        try:
            self.scheduler = copy.deepcopy(keep)
            with votive.set_grad_enabled(grad and votive.is_grad_enabled()):
                return self._begin_at(
                    prompt, image, strength, num_inference_steps, timesteps, sigmas, guidance_scale, negative_prompt,
                    num_images_per_prompt, eta, generator, prompt_embeds, negative_prompt_embeds,
                    cross_attention_kwargs, clip_skip, grad,
                )  # fmt: skip
        finally:
            self.scheduler = keep

    def _begin_at(
        self,
        prompt: Texts,
        image: Any,
        strength: float,
        num_inference_steps: int,
        timesteps: list[int] | None,
        sigmas: list[float] | None,
        guidance_scale: float,
        negative_prompt: Texts,
        num_images_per_prompt: int,
        eta: float,
        generator: Generators,
        prompt_embeds: Tensor | None,
        negative_prompt_embeds: Tensor | None,
        cross_attention_kwargs: Mapping[str, Any] | None,
        clip_skip: int | None,
        grad: bool,
    ) -> TextDenoising:
        name = type(self).__name__
        if image is None:
            raise ValueError(f"{name}: give an image to begin with.")
        if not 0 <= strength <= 1:
            raise ValueError(f"{name}: strength must be 0 to 1, got {strength}.")
        guided = guidance_scale > 1 and self.unet.config.time_cond_proj_dim is None
        positive, negative = self.encode_prompt(
            prompt,
            None,
            num_images_per_prompt,
            guided,
            negative_prompt,
            prompt_embeds,
            negative_prompt_embeds,
            clip_skip,
        )
        steps = set_timesteps(self.scheduler, num_inference_steps, self.device, timesteps, sigmas)
        steps = later(self.scheduler, steps, strength)
        if len(steps) < 1:
            raise ValueError(
                f"{name}: strength={strength} of {num_inference_steps} steps leaves none; raise one of them."
            )
        pictures = read(image, self.vae_scale_factor, self.vae.config.latent_channels)
        latents = begun(self, pictures.to(device=self.device, dtype=positive.dtype), steps, positive, generator)
        return self._run_of(
            latents, steps, positive, negative, guidance_scale, 0.0, eta, generator, cross_attention_kwargs, grad
        )

    def _encoded(self, pictures: Tensor, generator: Generators) -> Tensor:
        found: Tensor = self.vae.encode(pictures).latent_dist.sample(generator)
        return self.vae.config.scaling_factor * found


def later(scheduler: Any, steps: Tensor, strength: float) -> Tensor:
    """The last timesteps of a run, as many as `strength` says."""
    count = scheduler.num_inference_steps or len(steps)
    left_out = max(count - min(int(count * strength), count), 0) * scheduler.order
    if hasattr(scheduler, "set_begin_index"):
        scheduler.set_begin_index(left_out)
    return steps[left_out:]


def begun(
    pipe: Any, pictures: Tensor, steps: Tensor, positive: Tensor, generator: Generators, noised: bool = True
) -> Tensor:
    """The latents of pictures as they are at the first timestep, one for each text."""
    name, count = type(pipe).__name__, positive.shape[0]
    if count % pictures.shape[0]:
        raise ValueError(f"{name}: {pictures.shape[0]} pictures do not go into {count} texts.")
    if isinstance(generator, list | tuple) and len(generator) != count:
        raise ValueError(f"{name}: {len(generator)} generators came for {count} pictures; give one for each.")
    latents = pictures
    if pictures.shape[1] != pipe.vae.config.latent_channels:
        several = isinstance(generator, list | tuple)
        if several and pictures.shape[0] < count:
            pictures = votive.cat([pictures] * (count // pictures.shape[0]))
        latents = pipe._encoded(pictures, generator)
    if latents.shape[0] < count:
        latents = votive.cat([latents] * (count // latents.shape[0]))
    if not noised:
        return latents
    noise = randn(tuple(latents.shape), generator, pipe.device, positive.dtype)
    found: Tensor = pipe.scheduler.add_noise(latents, noise, steps[:1].repeat(count))
    return found
