"""Pictures of nothing in particular: a denoiser of pixels with DDPM's or DDIM's scheduler, as diffusers has them."""

from __future__ import annotations

import copy
from typing import Any

import votive

from .denoising import Denoising
from .gaussian import Generators, randn
from .output import ImagePipelineOutput
from .pictures import check_output_type, shown
from .pipeline import DiffusionPipeline
from .schedulers import DDIMScheduler
from .schedulers.base import Scheduler


class DDPMPipeline(DiffusionPipeline):
    """Pictures such as a denoiser learned: Ho et al. 2020, arXiv:2006.11239.

    >>> from votive.models.diffusion import DDPMPipeline, DDPMScheduler, UNet2DModel
    >>> unet = UNet2DModel(sample_size=4, block_out_channels=(8,), norm_num_groups=4, layers_per_block=1,
    ...     down_block_types=("DownBlock2D",), up_block_types=("UpBlock2D",))
    >>> DDPMPipeline(unet, DDPMScheduler())(num_inference_steps=2, output_type="np").images.shape
    (1, 4, 4, 3)
    """

    parts = ("unet", "scheduler")
    unet: Any
    scheduler: Any

    def __init__(self, unet: Any, scheduler: Scheduler) -> None:
        self.register_modules(unet=unet, scheduler=scheduler)

    def denoise(
        self,
        batch_size: int = 1,
        generator: Generators = None,
        num_inference_steps: int = 1000,
        *,
        grad: bool = False,
        **step_options: Any,
    ) -> Denoising:
        """A run that waits before each timestep, with a scheduler of its own."""
        return self._begin(
            copy.deepcopy(self.scheduler), batch_size, generator, num_inference_steps, grad, step_options
        )

    @votive.no_grad()
    def __call__(
        self,
        batch_size: int = 1,
        generator: Generators = None,
        num_inference_steps: int = 1000,
        output_type: str = "pil",
        return_dict: bool = True,
    ) -> ImagePipelineOutput | tuple[Any]:
        """So many pictures."""
        return self._through(
            self._begin(self.scheduler, batch_size, generator, num_inference_steps, False, {}), output_type, return_dict
        )

    def _begin(
        self,
        scheduler: Any,
        batch_size: int,
        generator: Generators,
        num_inference_steps: int,
        grad: bool,
        step_options: dict[str, Any],
    ) -> Denoising:
        if isinstance(generator, list | tuple) and len(generator) != batch_size:
            raise ValueError(
                f"{type(self).__name__}: {len(generator)} generators came for {batch_size} pictures; give one for each."
            )
        size = self.unet.config.sample_size
        if size is None:
            raise ValueError(f"{type(self).__name__}: the denoiser says no sample_size.")
        sides = tuple(size) if isinstance(size, list | tuple) else (size, size)
        noise = randn((batch_size, self.unet.config.in_channels, *sides), generator, self.device, self.dtype)
        scheduler.set_timesteps(num_inference_steps)
        return Denoising(
            scheduler,
            noise,
            scheduler.timesteps,
            lambda x, t: self.unet(x, t).sample,
            step_options={**step_options, "generator": generator},
            generator=generator,
            show=shown,
            grad=grad,
        )

    def _through(self, run: Denoising, output_type: str, return_dict: bool) -> ImagePipelineOutput | tuple[Any]:
        check_output_type(type(self).__name__, output_type)
        with self.progress_bar(len(run)) as advance:
            while not run.done:
                run.step()
                run.drop_past()
                advance()
        images = run.images(output_type)
        return ImagePipelineOutput(images=images) if return_dict else (images,)


class DDIMPipeline(DDPMPipeline):
    """Pictures in few steps: Song et al. 2020, arXiv:2010.02502. Any scheduler of its kind becomes DDIM's.

    >>> from votive.models.diffusion import DDIMPipeline, DDPMScheduler, UNet2DModel
    >>> unet = UNet2DModel(sample_size=4, block_out_channels=(8,), norm_num_groups=4, layers_per_block=1,
    ...     down_block_types=("DownBlock2D",), up_block_types=("UpBlock2D",))
    >>> DDIMPipeline(unet, DDPMScheduler())(num_inference_steps=2, output_type="pt").images.shape
    votive.Size([1, 3, 4, 4])
    """

    def __init__(self, unet: Any, scheduler: Scheduler) -> None:
        super().__init__(unet, DDIMScheduler.from_config(scheduler.config))

    @votive.no_grad()
    def __call__(
        self,
        batch_size: int = 1,
        generator: Generators = None,
        eta: float = 0.0,
        num_inference_steps: int = 50,
        use_clipped_model_output: bool | None = None,
        output_type: str = "pil",
        return_dict: bool = True,
    ) -> ImagePipelineOutput | tuple[Any]:
        """So many pictures; `eta` is how much noise comes back at each step, 1 for as much as DDPM has."""
        options = {"eta": eta, "use_clipped_model_output": bool(use_clipped_model_output)}
        run = self._begin(self.scheduler, batch_size, generator, num_inference_steps, False, options)
        return self._through(run, output_type, return_dict)
