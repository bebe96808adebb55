"""A run that looks at texts. Knows no network and no tokenizer."""

from __future__ import annotations

from ...tensor import Tensor
from .denoising import Denoising


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

    @property
    def added(self) -> dict[str, Tensor] | None:
        """The last two as the denoiser takes them."""
        if self.add_text_embeds is None or self.add_time_ids is None:
            return None
        return {"text_embeds": self.add_text_embeds, "time_ids": self.add_time_ids}
