"""A run that looks at texts, and that may keep parts of a picture. Knows no network and no tokenizer."""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from .denoising import Denoising

# What the network is told beside the sample: with another value, what it said before is not what it says.
_TOLD = (
    "prompt_embeds", "guidance_scale", "add_text_embeds", "add_time_ids", "mask", "masked_image_latents",
)  # fmt: skip


class TextDenoising(Denoising):
    """A run that looks at texts: `prompt_embeds` may be replaced between steps, as may `guidance_scale`.

    Of `prompt_embeds` the first half is what guidance leads away from, where there is guidance.

    >>> from votive.models.diffusion import Denoising, TextDenoising
    >>> issubclass(TextDenoising, Denoising), TextDenoising.guidance_scale
    (True, 1.0)
    """

    prompt_embeds: Tensor
    negative_prompt_embeds: Tensor | None = None
    guidance_scale: float = 1.0
    # What Stable Diffusion XL is told beside the text: pooled texts, and sizes.
    add_text_embeds: Tensor | None = None
    add_time_ids: Tensor | None = None
    # Where a picture is painted anew: 1 there, of the size of latents; and the rest of it, for a network that sees it.
    mask: Tensor | None = None
    masked_image_latents: Tensor | None = None
    # The picture and the noise of the first timestep, for a network that does not see them: the rest is put back.
    image_latents: Tensor | None = None
    first_noise: Tensor | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in _TOLD:
            self.forget()

    @property
    def added(self) -> dict[str, Tensor] | None:
        """What XL is told, as the denoiser takes it."""
        if self.add_text_embeds is None or self.add_time_ids is None:
            return None
        return {"text_embeds": self.add_text_embeds, "time_ids": self.add_time_ids}

    def settled(self, latents: Tensor) -> Tensor:
        """What a step led to, and outside of the mask the picture as noisy as the next timestep is."""
        if self.image_latents is None or self.mask is None:
            return latents
        kept, after = self.image_latents, self.index + 1
        if after < len(self):
            scheduler: Any = self.scheduler
            next_ones = self.timesteps[after : after + 1].repeat(kept.shape[0])
            kept = scheduler.add_noise(kept, self.first_noise, next_ones)
        return (1 - self.mask) * kept + self.mask * latents
