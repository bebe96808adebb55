"""Pictures of texts that begin with a picture, by Stable Diffusion XL; also its refiner.

Names and order of arguments are diffusers'.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import votive

from ...tensor import Tensor
from .gaussian import Generators
from .output import StableDiffusionXLPipelineOutput
from .pictures import check_output_type, read
from .schedulers.base import Scheduler
from .scheduling import set_timesteps
from .stable_diffusion import Callback
from .stable_diffusion_img2img import begun, later
from .stable_diffusion_xl import Sides, StableDiffusionXLPipeline, sizes_of
from .text_denoising import TextDenoising
from .texts import Texts


class StableDiffusionXLImg2ImgPipeline(StableDiffusionXLPipeline):
    """Pictures of texts that keep something of a given one: the less, the nearer `strength` is to 1.

    With `denoising_start`, latents go on from that share of the way, where a run with `denoising_end` left them: so
    the refiner takes over. It is told an `aesthetic_score` in place of the size, where `requires_aesthetics_score`.

    >>> from votive.models.diffusion import StableDiffusionXLImg2ImgPipeline
    >>> StableDiffusionXLImg2ImgPipeline.settings
    ('force_zeros_for_empty_prompt', 'requires_aesthetics_score')
    """

    settings = ("force_zeros_for_empty_prompt", "requires_aesthetics_score")

    def __init__(
        self,
        vae: Any,
        text_encoder: Any,
        text_encoder_2: Any,
        tokenizer: Any,
        tokenizer_2: Any,
        unet: Any,
        scheduler: Scheduler,
        image_encoder: None = None,
        feature_extractor: None = None,
        requires_aesthetics_score: bool = False,
        force_zeros_for_empty_prompt: bool = True,
        add_watermarker: bool | None = None,
    ) -> None:
        super().__init__(
            vae, text_encoder, text_encoder_2, tokenizer, tokenizer_2, unet, scheduler, image_encoder,
            feature_extractor, force_zeros_for_empty_prompt, add_watermarker,
        )  # fmt: skip
        self.requires_aesthetics_score = requires_aesthetics_score

    def denoise(  # type: ignore[override]
        self,
        prompt: Texts = None,
        prompt_2: Texts = None,
        image: Any = None,
        strength: float = 0.3,
        num_inference_steps: int = 50,
        timesteps: list[int] | None = None,
        sigmas: list[float] | None = None,
        denoising_start: float | None = None,
        denoising_end: float | None = None,
        guidance_scale: float = 5.0,
        negative_prompt: Texts = None,
        negative_prompt_2: Texts = None,
        num_images_per_prompt: int = 1,
        eta: float = 0.0,
        generator: Generators = None,
        latents: Tensor | None = None,
        prompt_embeds: Tensor | None = None,
        negative_prompt_embeds: Tensor | None = None,
        pooled_prompt_embeds: Tensor | None = None,
        negative_pooled_prompt_embeds: Tensor | None = None,
        cross_attention_kwargs: Mapping[str, Any] | None = None,
        guidance_rescale: float = 0.0,
        original_size: Sides = None,
        crops_coords_top_left: tuple[int, int] = (0, 0),
        target_size: Sides = None,
        negative_original_size: Sides = None,
        negative_crops_coords_top_left: tuple[int, int] = (0, 0),
        negative_target_size: Sides = None,
        aesthetic_score: float = 6.0,
        negative_aesthetic_score: float = 2.5,
        clip_skip: int | None = None,
        grad: bool = False,
        *,
        scheduler: Scheduler | None = None,
    ) -> TextDenoising:
        """A run that waits before each timestep, with a copy of the scheduler, or with the one given."""
        keep, name = self.scheduler, type(self).__name__
        if image is None:
            raise ValueError(f"{name}: give an image to begin with.")
        if not 0 <= strength <= 1:
            raise ValueError(f"{name}: strength must be 0 to 1, got {strength}.")
        guided = guidance_scale > 1 and self.unet.config.time_cond_proj_dim is None
        try:
            self.scheduler = copy.deepcopy(keep) if scheduler is None else scheduler
            with votive.set_grad_enabled(grad and votive.is_grad_enabled()):
                positive, negative, pooled, other = self.encode_prompt(
                    prompt, prompt_2, None, num_images_per_prompt, guided, negative_prompt, negative_prompt_2,
                    prompt_embeds, negative_prompt_embeds, pooled_prompt_embeds, negative_pooled_prompt_embeds,
                    clip_skip,
                )  # fmt: skip
                steps = set_timesteps(self.scheduler, num_inference_steps, self.device, timesteps, sigmas)
                steps = self._from(steps, strength, denoising_start)
                steps = self._until(steps, denoising_end)
                if len(steps) < 1:
                    raise ValueError(
                        f"{name}: strength={strength}, denoising_start={denoising_start} and "
                        f"denoising_end={denoising_end} leave none of {num_inference_steps} steps."
                    )
                if latents is None:
                    pictures = read(image, self.vae_scale_factor, self.vae.config.latent_channels)
                    pictures = pictures.to(device=self.device, dtype=positive.dtype)
                    latents = begun(self, pictures, steps, positive, generator, noised=denoising_start is None)
                else:
                    latents = latents.to(self.device)
                run = self._run_of(
                    latents, steps, positive, negative, guidance_scale, guidance_rescale, eta, generator,
                    cross_attention_kwargs, grad,
                )  # fmt: skip
                factor = self.vae_scale_factor
                told, avoided = sizes_of(
                    name, (latents.shape[-2] * factor, latents.shape[-1] * factor), original_size,
                    crops_coords_top_left, target_size, negative_original_size, negative_crops_coords_top_left,
                    negative_target_size,
                )  # fmt: skip
                if self.requires_aesthetics_score:
                    told, avoided = [*told[:4], aesthetic_score], [*avoided[:4], negative_aesthetic_score]
                self._tell(run, pooled, other, told, avoided)
                return run
        finally:
            self.scheduler = keep

    @votive.no_grad()
    def __call__(
        self,
        prompt: Texts = None,
        prompt_2: Texts = None,
        image: Any = None,
        strength: float = 0.3,
        num_inference_steps: int = 50,
        timesteps: list[int] | None = None,
        sigmas: list[float] | None = None,
        denoising_start: float | None = None,
        denoising_end: float | None = None,
        guidance_scale: float = 5.0,
        negative_prompt: Texts = None,
        negative_prompt_2: Texts = None,
        num_images_per_prompt: int = 1,
        eta: float = 0.0,
        generator: Generators = None,
        latents: Tensor | None = None,
        prompt_embeds: Tensor | None = None,
        negative_prompt_embeds: Tensor | None = None,
        pooled_prompt_embeds: Tensor | None = None,
        negative_pooled_prompt_embeds: Tensor | None = None,
        output_type: str = "pil",
        return_dict: bool = True,
        cross_attention_kwargs: Mapping[str, Any] | None = None,
        guidance_rescale: float = 0.0,
        original_size: Sides = None,
        crops_coords_top_left: tuple[int, int] = (0, 0),
        target_size: Sides = None,
        negative_original_size: Sides = None,
        negative_crops_coords_top_left: tuple[int, int] = (0, 0),
        negative_target_size: Sides = None,
        aesthetic_score: float = 6.0,
        negative_aesthetic_score: float = 2.5,
        clip_skip: int | None = None,
        callback_on_step_end: Callback | None = None,
        callback_on_step_end_tensor_inputs: tuple[str, ...] | list[str] = ("latents",),
    ) -> StableDiffusionXLPipelineOutput | tuple[Any]:
        """Pictures of `prompt` that begin with `image`; see `StableDiffusionXLPipeline` for the others."""
        check_output_type(type(self).__name__, output_type)
        self._check_callback(callback_on_step_end_tensor_inputs)
        run = self.denoise(
            prompt, prompt_2, image, strength, num_inference_steps, timesteps, sigmas, denoising_start, denoising_end,
            guidance_scale, negative_prompt, negative_prompt_2, num_images_per_prompt, eta, generator, latents,
            prompt_embeds, negative_prompt_embeds, pooled_prompt_embeds, negative_pooled_prompt_embeds,
            cross_attention_kwargs, guidance_rescale, original_size, crops_coords_top_left, target_size,
            negative_original_size, negative_crops_coords_top_left, negative_target_size, aesthetic_score,
            negative_aesthetic_score, clip_skip, scheduler=self.scheduler,
        )  # fmt: skip
        found, _ = self._through(run, output_type, callback_on_step_end, callback_on_step_end_tensor_inputs)
        return StableDiffusionXLPipelineOutput(images=found) if return_dict else (found,)

    def _from(self, steps: Tensor, strength: float, start: float | None) -> Tensor:
        """The timesteps behind a share of the way, or as many as `strength` says."""
        if start is None:
            return later(self.scheduler, steps, strength)
        if not 0 < start < 1:
            raise ValueError(f"{type(self).__name__}: denoising_start must lie between 0 and 1, got {start}.")
        count = int((steps < self._at(start)).sum())
        if self.scheduler.order == 2 and count % 2 == 0:
            # Timesteps stand there twice but the first: a step is not cut in its middle.
            count += 1
        first = len(steps) - count
        if hasattr(self.scheduler, "set_begin_index"):
            self.scheduler.set_begin_index(first)
        return steps[first:]

    def _encoded(self, pictures: Tensor, generator: Generators) -> Tensor:
        vae, c, dtype = self.vae, self.vae.config, pictures.dtype
        wide = c.force_upcast and dtype != votive.float64
        try:
            if wide:
                vae.to(votive.float32)
                pictures = pictures.float()
            found: Tensor = vae.encode(pictures).latent_dist.sample(generator).to(dtype)
        finally:
            if wide:
                vae.to(dtype)
        if c.latents_mean is None or c.latents_std is None:
            return c.scaling_factor * found
        mean, std = (
            votive.tensor(v, dtype=dtype, device=found.device).view(1, -1, 1, 1)
            for v in (c.latents_mean, c.latents_std)
        )
        return (found - mean) * c.scaling_factor / std
