"""The checker in the folders of Stable Diffusion 1: pictures near concepts that are not to be shown come out black.

How it decides: Rando et al. 2022, arXiv:2210.04610. Its names, thresholds and rounding are diffusers'.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import votive
from votive import nn
from votive.nn import functional as F

from ...tensor import Tensor
from ..clip_config import CLIPConfig
from ..clip_sides import _CLIP, CLIPVisionModel

# How many concepts the files have: those that are not shown, and those that make the former count sooner.
CONCEPTS, SPECIAL = 17, 3


class StableDiffusionSafetyChecker(_CLIP):
    """Compares pictures with concepts in CLIP's space.

    >>> from votive.models import CLIPConfig
    >>> from votive.models.diffusion import StableDiffusionSafetyChecker
    >>> config = CLIPConfig(projection_dim=4, vision_config={"image_size": 16, "patch_size": 8, "hidden_size": 8,
    ...     "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2})
    >>> checker = StableDiffusionSafetyChecker(config)
    >>> images, unfit = checker(votive.ones(1, 3, 16, 16), votive.ones(1, 3, 8, 8))
    >>> unfit
    [False]
    """

    ignored: ClassVar[tuple[str, ...]] = (*_CLIP.ignored, r"^(text_model|text_projection|logit_scale)\b")
    renames: ClassVar[dict[str, str]] = {r"^vision_model\.vision_model\.": "vision_model."}

    def __init__(self, config: CLIPConfig) -> None:
        super().__init__(config)
        width = config.projection_dim
        self.vision_model = CLIPVisionModel(config.vision_config)
        self.visual_projection = nn.Linear(config.vision_config.hidden_size, width, bias=False)
        self.concept_embeds = nn.Parameter(votive.ones(CONCEPTS, width), requires_grad=False)
        self.special_care_embeds = nn.Parameter(votive.ones(SPECIAL, width), requires_grad=False)
        self.concept_embeds_weights = nn.Parameter(votive.ones(CONCEPTS), requires_grad=False)
        self.special_care_embeds_weights = nn.Parameter(votive.ones(SPECIAL), requires_grad=False)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """What makes vectors of patches."""
        return self.vision_model.get_input_embeddings()

    def scores(self, clip_input: Tensor) -> tuple[list[list[float]], list[list[float]]]:
        """How far above their thresholds special concepts and the others are, of pictures (batch, 3, height, width)."""
        seen = F.normalize(self.visual_projection(self.vision_model(clip_input).pooler_output))
        special, others = [], []
        cares = _near(seen, self.special_care_embeds), self.special_care_embeds_weights.float().tolist()
        plain = _near(seen, self.concept_embeds), self.concept_embeds_weights.float().tolist()
        for care, row in zip(cares[0], plain[0], strict=True):
            # A special concept that was seen makes all after it count sooner.
            scores, more = [], 0.0
            for near, limit in zip(care, cares[1], strict=True):
                scores.append(round(near - limit + more, 3))
                more = 0.01 if scores[-1] > 0 else more
            special.append(scores)
            others.append([round(near - limit + more, 3) for near, limit in zip(row, plain[1], strict=True)])
        return special, others

    @votive.no_grad()
    def forward(self, clip_input: Tensor, images: Any) -> tuple[Any, list[bool]]:
        """The images, black where they are unfit, and which are; `clip_input` is what CLIP's processor made of them."""
        unfit = [any(score > 0 for score in row) for row in self.scores(clip_input)[1]]
        if not any(unfit):
            return images, unfit
        warnings.warn(
            f"{type(self).__name__}: {sum(unfit)} of {len(unfit)} pictures may not be fit to show and come out black; "
            "try another prompt or seed.",
            stacklevel=2,
        )
        black = [i * 0 if bad else i for i, bad in zip(images, unfit, strict=True)]
        return votive.stack(black) if isinstance(images, Tensor) else black, unfit


def _near(seen: Tensor, concepts: Tensor) -> list[list[float]]:
    """Cosines of pictures and concepts."""
    found: list[list[float]] = (seen @ F.normalize(concepts).t()).float().tolist()
    return found
