"""Pictures of texts: Stable Diffusion 1 and 2, step by step or at once.

Rombach et al. 2022, arXiv:2112.10752. Names and order of arguments are diffusers'.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import votive

from ...tensor import Tensor
from .adapting import Adapting
from .gaussian import Generators, randn
from .output import StableDiffusionPipelineOutput
from .pictures import check_output_type, shown
from .pipeline import DiffusionPipeline
from .schedulers.base import Scheduler
from .scheduling import mended_settings, set_timesteps, step_options
from .text_denoising import TextDenoising
from .texts import Texts, count_of, guidance_embedding, negative_texts, read_texts, repeated, rescaled

Callback = Callable[[Any, int, Any, dict[str, Any]], dict[str, Any]]


class StableDiffusionPipeline(Adapting, DiffusionPipeline):
    """Pictures of texts.

    `pipe(prompt)` makes them at once. `pipe.denoise(prompt)` gives a run that waits before each timestep: look at it,
    change its latents or its text, go on, go back (see `Denoising`).

    >>> from votive.models.diffusion import StableDiffusionPipeline
    >>> StableDiffusionPipeline.parts[:4]
    ('vae', 'text_encoder', 'tokenizer', 'unet')
    """

    parts: ClassVar[tuple[str, ...]] = (
        "vae",
        "text_encoder",
        "tokenizer",
        "unet",
        "scheduler",
        "safety_checker",
        "feature_extractor",
    )
    optional: ClassVar[tuple[str, ...]] = ("text_encoder", "tokenizer", "safety_checker", "feature_extractor")
    settings: ClassVar[tuple[str, ...]] = ("requires_safety_checker",)
    vae: Any
    text_encoder: Any
    tokenizer: Any
    unet: Any
    scheduler: Any
    safety_checker: Any
    feature_extractor: Any
    # Tensors of a run that a callback may see and replace.
    tensors: ClassVar[tuple[str, ...]] = ("latents", "prompt_embeds", "negative_prompt_embeds")

    def __init__(
        self,
        vae: Any,
        text_encoder: Any,
        tokenizer: Any,
        unet: Any,
        scheduler: Scheduler,
        safety_checker: Callable[..., Any] | None = None,
        feature_extractor: Any = None,
        requires_safety_checker: bool = True,
    ) -> None:
        if safety_checker is not None and feature_extractor is None:
            raise ValueError(
                f"{type(self).__name__}: a safety_checker looks at what feature_extractor makes of pictures; give one, "
                "such as a CLIPImageProcessor, or safety_checker=None to have pictures that nobody checked."
            )
        self.register_modules(
            vae=vae,
            text_encoder=text_encoder,
            tokenizer=tokenizer,
            unet=unet,
            scheduler=scheduler,
            safety_checker=safety_checker,
            feature_extractor=feature_extractor,
        )
        # Written into folders: whether whoever loads them without a checker is warned.
        self.requires_safety_checker = requires_safety_checker
        mended_settings(type(self).__name__, unet, scheduler)
        self._interrupt = False

    @property
    def vae_scale_factor(self) -> int:
        """Pixels for one number of the latents, along one side."""
        return int(self.vae.factor)

    @property
    def interrupt(self) -> bool:
        """Whether the call that runs is to stop; a callback sets `_interrupt`."""
        return self._interrupt

    def encode_prompt(
        self,
        prompt: Texts,
        device: votive.device | str | None = None,
        num_images_per_prompt: int = 1,
        do_classifier_free_guidance: bool = True,
        negative_prompt: Texts = None,
        prompt_embeds: Tensor | None = None,
        negative_prompt_embeds: Tensor | None = None,
        clip_skip: int | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """The vectors of texts, and of what is to be avoided, each `num_images_per_prompt` times."""
        name = type(self).__name__
        count = count_of(prompt, prompt_embeds, name)
        texts = [prompt] if isinstance(prompt, str) else list(prompt or ())
        where = self.device if device is None else votive.device(device)
        if prompt_embeds is None:
            prompt_embeds = read_texts(*self._reader(), texts, None, clip_skip, name)
        dtype = self.unet.dtype if self.text_encoder is None else next(self.text_encoder.parameters()).dtype
        found = repeated(prompt_embeds.to(device=where, dtype=dtype), num_images_per_prompt)
        if not do_classifier_free_guidance:
            return found, None
        if negative_prompt_embeds is None:
            avoided = negative_texts(prompt, negative_prompt, count, name)
            negative_prompt_embeds = read_texts(*self._reader(), avoided, found.shape[1], None, name)
        elif negative_prompt is not None:
            raise ValueError(f"{name}: give negative_prompt or negative_prompt_embeds, not both.")
        other = repeated(negative_prompt_embeds.to(device=where, dtype=dtype), num_images_per_prompt)
        if other.shape != found.shape:
            raise ValueError(
                f"{name}: prompt_embeds and negative_prompt_embeds are of one shape, got {tuple(found.shape)} and "
                f"{tuple(other.shape)}."
            )
        return found, other

    def _reader(self) -> tuple[Any, Any]:
        if self.text_encoder is None or self.tokenizer is None:
            raise ValueError(
                f"{type(self).__name__}: without text_encoder and tokenizer texts cannot be read; pass prompt_embeds "
                "and negative_prompt_embeds."
            )
        return self.text_encoder, self.tokenizer

    def prepare_latents(
        self, count: int, height: int, width: int, dtype: votive.dtype, generator: Generators, latents: Tensor | None
    ) -> Tensor:
        """The noise that a run begins with, as strong as the scheduler wants it."""
        factor = self.vae_scale_factor
        shape = (count, self.unet.config.in_channels, height // factor, width // factor)
        if latents is None:
            latents = randn(shape, generator, self.device, dtype)
        elif tuple(latents.shape) != shape:
            raise ValueError(
                f"{type(self).__name__}: latents of the shape {shape} are needed, got {tuple(latents.shape)}."
            )
        else:
            latents = latents.to(self.device)
        return latents * self.scheduler.init_noise_sigma

    def denoise(
        self,
        prompt: Texts = None,
        height: int | None = None,
        width: int | None = None,
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
        guidance_rescale: float = 0.0,
        clip_skip: int | None = None,
        grad: bool = False,
    ) -> TextDenoising:
        """A run that waits before each timestep, with a scheduler of its own; `images()` shows where it is.

        Steps are recorded for gradients with `grad`.
        """
        keep = self.scheduler
        try:
            self.scheduler = copy.deepcopy(keep)
            with votive.set_grad_enabled(grad and votive.is_grad_enabled()):
                return self._begin(
                    prompt, height, width, num_inference_steps, timesteps, sigmas, guidance_scale, negative_prompt,
                    num_images_per_prompt, eta, generator, latents, prompt_embeds, negative_prompt_embeds,
                    cross_attention_kwargs, guidance_rescale, clip_skip, grad,
                )  # fmt: skip
        finally:
            self.scheduler = keep

    @votive.no_grad()
    def __call__(
        self,
        prompt: Texts = None,
        height: int | None = None,
        width: int | None = None,
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
        guidance_rescale: float = 0.0,
        clip_skip: int | None = None,
        callback_on_step_end: Callback | None = None,
        callback_on_step_end_tensor_inputs: tuple[str, ...] | list[str] = ("latents",),
    ) -> StableDiffusionPipelineOutput | tuple[Any, list[bool] | None]:
        """Pictures of `prompt`; sides are those that the denoiser learned unless told.

        The callback gets the pipeline, the number of the step, the timestep and the tensors asked for, and returns a
        dict of those that it replaces.
        """
        check_output_type(type(self).__name__, output_type)
        self._check_callback(callback_on_step_end_tensor_inputs)
        run = self._begin(
            prompt, height, width, num_inference_steps, timesteps, sigmas, guidance_scale, negative_prompt,
            num_images_per_prompt, eta, generator, latents, prompt_embeds, negative_prompt_embeds,
            cross_attention_kwargs, guidance_rescale, clip_skip, False,
        )  # fmt: skip
        found, unfit = self._through(run, output_type, callback_on_step_end, callback_on_step_end_tensor_inputs)
        if not return_dict:
            return found, unfit
        return StableDiffusionPipelineOutput(images=found, nsfw_content_detected=unfit)

    def _check_callback(self, names: tuple[str, ...] | list[str]) -> None:
        for name in names:
            if name not in self.tensors:
                raise ValueError(
                    f"{type(self).__name__}: callback_on_step_end_tensor_inputs may have {', '.join(self.tensors)}; "
                    f"got {name!r}."
                )

    def _through(
        self, run: TextDenoising, output_type: str, callback: Callback | None, names: tuple[str, ...] | list[str]
    ) -> tuple[Any, list[bool] | None]:
        """A run to its end; its pictures, and which are unfit where a checker said so."""
        self._interrupt = False
        with self.progress_bar(len(run)) as advance:
            while not run.done and not self._interrupt:
                t, i = run.timesteps[run.index], run.index
                run.step()
                # Only a run that is stepped by hand goes back.
                run.drop_past()
                if callback is not None:
                    answer = callback(self, i, t, {name: getattr(run, name) for name in names}) or {}
                    for name, value in answer.items():
                        self._check_callback((name,))
                        setattr(run, name, value)
                advance()
        return self._pictures(run.latents, output_type)

    def _begin(
        self,
        prompt: Texts,
        height: int | None,
        width: int | None,
        num_inference_steps: int,
        timesteps: list[int] | None,
        sigmas: list[float] | None,
        guidance_scale: float,
        negative_prompt: Texts,
        num_images_per_prompt: int,
        eta: float,
        generator: Generators,
        latents: Tensor | None,
        prompt_embeds: Tensor | None,
        negative_prompt_embeds: Tensor | None,
        cross_attention_kwargs: Mapping[str, Any] | None,
        guidance_rescale: float,
        clip_skip: int | None,
        grad: bool,
    ) -> TextDenoising:
        height, width = self._sides(height, width)
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
        first = self.prepare_latents(positive.shape[0], height, width, positive.dtype, generator, latents)
        return self._run_of(
            first, steps, positive, negative, guidance_scale, guidance_rescale, eta, generator,
            cross_attention_kwargs, grad,
        )  # fmt: skip

    def _sides(self, height: int | None, width: int | None) -> tuple[int, int]:
        own, factor = self.unet.config.sample_size, self.vae_scale_factor
        if height is None or width is None:
            if own is None:
                raise ValueError(f"{type(self).__name__}: the denoiser says no sample_size; pass height and width.")
            sides = own if isinstance(own, list | tuple) else (own, own)
            height, width = height or sides[0] * factor, width or sides[1] * factor
        if height % 8 or width % 8 or height <= 0 or width <= 0:
            raise ValueError(
                f"{type(self).__name__}: height and width are multiples of 8 above 0, got {height} and {width}."
            )
        return height, width

    def _run_of(
        self,
        latents: Tensor,
        steps: Tensor,
        positive: Tensor,
        negative: Tensor | None,
        guidance_scale: float,
        guidance_rescale: float,
        eta: float,
        generator: Generators,
        options: Mapping[str, Any] | None,
        grad: bool,
    ) -> TextDenoising:
        """A run over latents, with the text on both sides of guidance."""
        unet, scheduler = self.unet, self.scheduler
        width = unet.config.time_cond_proj_dim
        strength = None
        if width is not None:
            strength = guidance_embedding(guidance_scale, width, latents.shape[0], latents)

        def predict(x: Tensor, t: Tensor) -> Tensor:
            two = negative is not None
            seen = scheduler.scale_model_input(votive.cat([x, x]) if two else x, t)
            if run.mask is not None and run.masked_image_latents is not None:
                beside = votive.cat([run.mask, run.masked_image_latents], 1)
                seen = votive.cat([seen, votive.cat([beside, beside]) if two else beside], 1)
            found: Tensor = unet(
                seen,
                t,
                run.prompt_embeds,
                timestep_cond=strength,
                cross_attention_kwargs=options,
                added_cond_kwargs=run.added,
                return_dict=False,
            )[0]
            if not two:
                return found
            without, with_text = found.chunk(2)
            guided = without + run.guidance_scale * (with_text - without)
            return rescaled(guided, with_text, guidance_rescale) if guidance_rescale > 0 else guided

        run = TextDenoising(
            scheduler,
            latents,
            steps,
            predict,
            step_options=step_options(scheduler, eta, generator),
            generator=generator,
            show=self._show,
            grad=grad,
        )
        run.prompt_embeds = positive if negative is None else votive.cat([negative, positive])
        run.negative_prompt_embeds, run.guidance_scale = negative, guidance_scale
        return run

    def _show(self, latents: Tensor, output_type: str) -> Any:
        return self._pictures(latents, output_type)[0]

    def _pictures(self, latents: Tensor, output_type: str) -> tuple[Any, list[bool] | None]:
        """Pictures of latents, and which of them the checker finds unfit: these come out black."""
        if output_type == "latent":
            return latents, None
        decoded = self._decoded(latents)
        if self.safety_checker is None:
            return shown(decoded, output_type), None
        found = self.feature_extractor(shown(decoded, "pil"), return_tensors="vt").pixel_values
        seen = found.to(device=self.device, dtype=latents.dtype)
        checked, unfit = self.safety_checker(images=decoded, clip_input=seen)
        return shown(checked, output_type, unfit), [bool(u) for u in unfit]

    def _decoded(self, latents: Tensor) -> Tensor:
        """Pictures in -1 .. 1."""
        found: Tensor = self.vae.decode(latents / self.vae.config.scaling_factor, return_dict=False)[0]
        return found
