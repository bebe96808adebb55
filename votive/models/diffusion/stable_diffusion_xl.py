"""Pictures of texts by Stable Diffusion XL: two readers of the text, and sizes that the denoiser is told.

Podell et al. 2023, arXiv:2307.01952. Names and order of arguments are diffusers'.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar

import votive

from ...tensor import Tensor
from .gaussian import Generators
from .output import StableDiffusionXLPipelineOutput
from .pictures import check_output_type
from .schedulers.base import Scheduler
from .scheduling import set_timesteps
from .stable_diffusion import Callback, StableDiffusionPipeline
from .text_denoising import TextDenoising
from .texts import Texts, count_of, negative_texts, read_states, repeated

Sides = tuple[int, int] | None
_READERS = ("text_encoder", "text_encoder_2", "tokenizer", "tokenizer_2")


class StableDiffusionXLPipeline(StableDiffusionPipeline):
    """Pictures of texts, at once or by `denoise` step by step, as `StableDiffusionPipeline`.

    >>> from votive.models.diffusion import StableDiffusionXLPipeline
    >>> StableDiffusionXLPipeline.parts[1:5]
    ('text_encoder', 'text_encoder_2', 'tokenizer', 'tokenizer_2')
    """

    parts = ("vae", *_READERS, "unet", "scheduler", "image_encoder", "feature_extractor")
    optional: ClassVar[tuple[str, ...]] = (*_READERS, "image_encoder", "feature_extractor")
    settings: ClassVar[tuple[str, ...]] = ("force_zeros_for_empty_prompt",)
    tensors = ("latents", "prompt_embeds", "add_text_embeds", "add_time_ids")
    text_encoder_2: Any
    tokenizer_2: Any
    safety_checker = None

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
        force_zeros_for_empty_prompt: bool = True,
        add_watermarker: bool | None = None,
    ) -> None:
        name = type(self).__name__
        if image_encoder is not None or feature_extractor is not None:
            raise ValueError(f"{name}: image_encoder and feature_extractor are for IP-adapters, which are not here.")
        if add_watermarker:
            raise ValueError(f"{name}: there is no invisible watermark here; leave add_watermarker out.")
        if unet.config.addition_embed_type != "text_time":
            raise ValueError(
                f"{name}: the denoiser's addition_embed_type is {unet.config.addition_embed_type!r}; one of Stable "
                "Diffusion XL has 'text_time'. See StableDiffusionPipeline for others."
            )
        self.register_modules(
            vae=vae,
            text_encoder=text_encoder,
            text_encoder_2=text_encoder_2,
            tokenizer=tokenizer,
            tokenizer_2=tokenizer_2,
            unet=unet,
            scheduler=scheduler,
            image_encoder=None,
            feature_extractor=None,
        )
        self.force_zeros_for_empty_prompt = force_zeros_for_empty_prompt
        self._interrupt = False

    def encode_prompt(  # type: ignore[override]
        self,
        prompt: Texts,
        prompt_2: Texts = None,
        device: votive.device | str | None = None,
        num_images_per_prompt: int = 1,
        do_classifier_free_guidance: bool = True,
        negative_prompt: Texts = None,
        negative_prompt_2: Texts = None,
        prompt_embeds: Tensor | None = None,
        negative_prompt_embeds: Tensor | None = None,
        pooled_prompt_embeds: Tensor | None = None,
        negative_pooled_prompt_embeds: Tensor | None = None,
        clip_skip: int | None = None,
    ) -> tuple[Tensor, Tensor | None, Tensor, Tensor | None]:
        """The vectors of texts and of what is to be avoided, and the pooled ones of both.

        `prompt_2` is what the second reader reads in place of `prompt`.
        """
        name = type(self).__name__
        count = count_of(prompt, prompt_embeds, name)
        where = self.device if device is None else votive.device(device)
        if prompt_embeds is None:
            second = self._texts("prompt_2", prompt_2 or prompt, count)
            prompt_embeds, pooled = self._read(self._texts("prompt", prompt, count), second, None, clip_skip)
            pooled_prompt_embeds = pooled if pooled_prompt_embeds is None else pooled_prompt_embeds
        if pooled_prompt_embeds is None:
            raise ValueError(f"{name}: pooled_prompt_embeds come with prompt_embeds, from the same reader.")
        if do_classifier_free_guidance and negative_prompt_embeds is None:
            if negative_prompt is None and self.force_zeros_for_empty_prompt:
                negative_prompt_embeds = votive.zeros_like(prompt_embeds)
                negative_pooled_prompt_embeds = votive.zeros_like(pooled_prompt_embeds)
            else:
                avoided = negative_texts(prompt, negative_prompt or None, count, name)
                other = self._texts("negative_prompt_2", negative_prompt_2 or avoided, count)
                negative_prompt_embeds, pooled = self._read(avoided, other, prompt_embeds.shape[1], None)
                if negative_pooled_prompt_embeds is None:
                    negative_pooled_prompt_embeds = pooled
        elif do_classifier_free_guidance and (negative_prompt is not None or negative_prompt_2 is not None):
            raise ValueError(f"{name}: give negative_prompt or negative_prompt_embeds, not both.")
        reader = self.text_encoder_2
        dtype = self.unet.dtype if reader is None else next(reader.parameters()).dtype

        def placed(x: Tensor) -> Tensor:
            return repeated(x.to(device=where, dtype=dtype), num_images_per_prompt)

        found, pooled = placed(prompt_embeds), placed(pooled_prompt_embeds)
        if not do_classifier_free_guidance:
            return found, None, pooled, None
        if negative_prompt_embeds is None or negative_pooled_prompt_embeds is None:
            raise ValueError(f"{name}: negative_pooled_prompt_embeds come with negative_prompt_embeds.")
        if negative_prompt_embeds.shape != prompt_embeds.shape:
            raise ValueError(
                f"{name}: prompt_embeds and negative_prompt_embeds are of one shape, got {tuple(prompt_embeds.shape)} "
                f"and {tuple(negative_prompt_embeds.shape)}."
            )
        return found, placed(negative_prompt_embeds), pooled, placed(negative_pooled_prompt_embeds)

    def _texts(self, what: str, texts: Texts, count: int) -> list[str]:
        found = [texts] * count if isinstance(texts, str) else list(texts or ())
        if len(found) != count:
            raise ValueError(f"{type(self).__name__}: {len(found)} texts of {what} came for {count} of prompt.")
        return found

    def _read(
        self, texts: list[str], others: list[str], length: int | None, clip_skip: int | None
    ) -> tuple[Tensor, Tensor]:
        """Both readers' vectors, one behind the other, and the pooled ones of the last."""
        name = type(self).__name__
        if self.text_encoder_2 is None or self.tokenizer_2 is None:
            raise ValueError(
                f"{name}: without text_encoder_2 and tokenizer_2 texts cannot be read; pass prompt_embeds, "
                "pooled_prompt_embeds and the negative ones."
            )
        # The refiner has the second reader alone, and it reads the first text.
        pairs = [(self.text_encoder, self.tokenizer, texts), (self.text_encoder_2, self.tokenizer_2, others)]
        if self.text_encoder is None or self.tokenizer is None:
            pairs = [(self.text_encoder_2, self.tokenizer_2, texts)]
        read = [read_states(encoder, tokenizer, own, length, clip_skip, name) for encoder, tokenizer, own in pairs]
        pooled = next((p for _, p in read if p is not None), None)
        if pooled is None:
            raise ValueError(f"{name}: text_encoder_2 must be a CLIPTextModelWithProjection, which gives pooled texts.")
        return votive.cat([states for states, _ in read], -1), pooled

    def _tell(
        self, run: TextDenoising, pooled: Tensor, other: Tensor | None, told: list[float], avoided: list[float]
    ) -> None:
        """Give a run the pooled texts and the numbers of sizes, of what is to be avoided first."""
        width = self.unet.config.addition_time_embed_dim * len(told) + pooled.shape[-1]
        wanted = self.unet.add_embedding.linear_1.in_features
        if width != wanted:
            raise ValueError(
                f"{type(self).__name__}: {len(told)} numbers of sizes and pooled texts make {width} features, the "
                f"denoiser reads {wanted}; check its addition_time_embed_dim, text_encoder_2's projection_dim and, of "
                "a refiner, requires_aesthetics_score."
            )

        def rows(numbers: list[float]) -> Tensor:
            return votive.tensor([numbers] * pooled.shape[0], dtype=pooled.dtype, device=pooled.device)

        run.add_text_embeds, run.add_time_ids = pooled, rows(told)
        if other is not None:
            run.add_text_embeds = votive.cat([other, pooled])
            run.add_time_ids = votive.cat([rows(avoided), run.add_time_ids])

    def _until(self, steps: Tensor, end: float | None) -> Tensor:
        """The timesteps up to a share of the way."""
        if end is None or end == 1:
            return steps
        if not 0 < end < 1:
            raise ValueError(f"{type(self).__name__}: denoising_end must be above 0 and at most 1, got {end}.")
        return steps[: int((steps >= self._at(end)).sum())]

    def _at(self, share: float) -> int:
        """The timestep at a share of the way."""
        trained = self.scheduler.config.num_train_timesteps
        return round(trained - share * trained)

    def denoise(  # type: ignore[override]
        self,
        prompt: Texts = None,
        prompt_2: Texts = None,
        height: int | None = None,
        width: int | None = None,
        num_inference_steps: int = 50,
        timesteps: list[int] | None = None,
        sigmas: list[float] | None = None,
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
        clip_skip: int | None = None,
        grad: bool = False,
        *,
        scheduler: Scheduler | None = None,
    ) -> TextDenoising:
        """A run that waits before each timestep, with a copy of the scheduler, or with the one given."""
        keep = self.scheduler
        height, width = self._sides(height, width)
        told, avoided = sizes_of(
            type(self).__name__, (height, width), original_size, crops_coords_top_left, target_size,
            negative_original_size, negative_crops_coords_top_left, negative_target_size,
        )  # fmt: skip
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
                first = self.prepare_latents(positive.shape[0], height, width, positive.dtype, generator, latents)
                run = self._run_of(
                    first, self._until(steps, denoising_end), positive, negative, guidance_scale, guidance_rescale,
                    eta, generator, cross_attention_kwargs, grad,
                )  # fmt: skip
                self._tell(run, pooled, other, told, avoided)
                return run
        finally:
            self.scheduler = keep

    @votive.no_grad()
    def __call__(
        self,
        prompt: Texts = None,
        prompt_2: Texts = None,
        height: int | None = None,
        width: int | None = None,
        num_inference_steps: int = 50,
        timesteps: list[int] | None = None,
        sigmas: list[float] | None = None,
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
        clip_skip: int | None = None,
        callback_on_step_end: Callback | None = None,
        callback_on_step_end_tensor_inputs: tuple[str, ...] | list[str] = ("latents",),
    ) -> StableDiffusionXLPipelineOutput | tuple[Any]:
        """Pictures of `prompt`. `original_size`, `crops_coords_top_left` and `target_size` are what training was told
        of a picture; they are (height, width), without crops, unless given.
        """
        check_output_type(type(self).__name__, output_type)
        self._check_callback(callback_on_step_end_tensor_inputs)
        run = self.denoise(
            prompt, prompt_2, height, width, num_inference_steps, timesteps, sigmas, denoising_end, guidance_scale,
            negative_prompt, negative_prompt_2, num_images_per_prompt, eta, generator, latents, prompt_embeds,
            negative_prompt_embeds, pooled_prompt_embeds, negative_pooled_prompt_embeds, cross_attention_kwargs,
            guidance_rescale, original_size, crops_coords_top_left, target_size, negative_original_size,
            negative_crops_coords_top_left, negative_target_size, clip_skip, scheduler=self.scheduler,
        )  # fmt: skip
        found, _ = self._through(run, output_type, callback_on_step_end, callback_on_step_end_tensor_inputs)
        return StableDiffusionXLPipelineOutput(images=found) if return_dict else (found,)

    def _decoded(self, latents: Tensor) -> Tensor:
        vae, c = self.vae, self.vae.config
        # In float16 this autoencoder's numbers overflow.
        wide = vae.dtype == votive.float16 and c.force_upcast
        if c.latents_mean is not None and c.latents_std is not None:
            mean, std = (
                votive.tensor(v, dtype=latents.dtype, device=latents.device).view(1, -1, 1, 1)
                for v in (c.latents_mean, c.latents_std)
            )
            latents = latents * std / c.scaling_factor + mean
        else:
            latents = latents / c.scaling_factor
        if not wide:
            found: Tensor = vae.decode(latents.to(vae.dtype), return_dict=False)[0]
            return found
        try:
            vae.to(votive.float32)
            found = vae.decode(latents.float(), return_dict=False)[0]
        finally:
            vae.to(votive.float16)
        return found


def sizes_of(
    name: str,
    whole: tuple[int, int],
    original: Sides,
    crops: tuple[int, int],
    target: Sides,
    negative_original: Sides,
    negative_crops: tuple[int, int],
    negative_target: Sides,
) -> tuple[list[float], list[float]]:
    """What a denoiser is told of the sizes of pictures, and of those to be avoided: the same unless they are given.

    >>> from votive.models.diffusion.stable_diffusion_xl import sizes_of
    >>> sizes_of("pipe", (8, 16), None, (0, 0), None, None, (0, 0), None)[0]
    [8, 16, 0, 0, 8, 16]
    """
    if (negative_original is None) != (negative_target is None):
        raise ValueError(f"{name}: negative_original_size and negative_target_size come together.")
    told: list[float] = [*(original or whole), *crops, *(target or whole)]
    if negative_original is None or negative_target is None:
        return told, told
    return told, [*negative_original, *negative_crops, *negative_target]
