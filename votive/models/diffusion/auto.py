"""From a folder of diffusion to the pipeline for a use: from texts, or from a picture. Knows names of classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from ..config import StrPath, read_json
from .pipeline import INDEX, DiffusionPipeline
from .places import find_folder
from .stable_diffusion import StableDiffusionPipeline
from .stable_diffusion_img2img import StableDiffusionImg2ImgPipeline
from .stable_diffusion_inpaint import StableDiffusionInpaintPipeline
from .stable_diffusion_xl import StableDiffusionXLPipeline
from .stable_diffusion_xl_img2img import StableDiffusionXLImg2ImgPipeline

_PLACES = ("revision", "token", "cache_dir", "local_files_only")


class _AutoPipeline:
    """Chooses a class by the kind of files, which the first word of a class' name stands for."""

    kinds: ClassVar[dict[str, type[DiffusionPipeline]]] = {}

    @classmethod
    def _chosen(cls, named: str, where: object) -> type[DiffusionPipeline]:
        plain = named
        for ending in ("Pipeline", "Img2Img", "Inpaint", "ControlNet", "PAG"):
            plain = plain.removesuffix(ending)
        if plain not in cls.kinds:
            known = ", ".join(k.__name__ for k in cls.kinds.values())
            raise ValueError(f"{cls.__name__}: {where} is a {named}, for which there is none here; there are {known}.")
        return cls.kinds[plain]

    @classmethod
    def from_pretrained(cls, name: StrPath, **options: Any) -> Any:
        """The pipeline of a folder or a repository; `options` are those of `DiffusionPipeline.from_pretrained`."""
        places = {k: v for k, v in options.items() if k in _PLACES}
        index = read_json(find_folder(name, [], options.get("variant"), **places) / INDEX)
        return cls._chosen(str(index.get("_class_name")), Path(name)).from_pretrained(name, **options)

    @classmethod
    def from_pipe(cls, pipeline: DiffusionPipeline, **parts: Any) -> Any:
        """The pipeline for this use with the parts of another, which they share; `parts` by name replace some."""
        return cls._chosen(type(pipeline).__name__, "the pipeline given").from_pipe(pipeline, **parts)


class AutoPipelineForText2Image(_AutoPipeline):
    """The pipeline that makes pictures of texts, by a folder's model_index.json.

    >>> from votive.models.diffusion import AutoPipelineForText2Image
    >>> AutoPipelineForText2Image.from_pretrained("no-folder-here")
    Traceback (most recent call last):
    FileNotFoundError: no-folder-here is no folder here, and no repository id such as \
'stable-diffusion-v1-5/stable-diffusion-v1-5'.
    """

    kinds: ClassVar[dict[str, type[DiffusionPipeline]]] = {
        "StableDiffusion": StableDiffusionPipeline,
        "StableDiffusionXL": StableDiffusionXLPipeline,
    }


class AutoPipelineForImage2Image(_AutoPipeline):
    """The pipeline that makes pictures of texts and a picture, by a folder's model_index.json.

    >>> from votive.models.diffusion import AutoPipelineForImage2Image
    >>> sorted(AutoPipelineForImage2Image.kinds)
    ['StableDiffusion', 'StableDiffusionXL']
    """

    kinds: ClassVar[dict[str, type[DiffusionPipeline]]] = {
        "StableDiffusion": StableDiffusionImg2ImgPipeline,
        "StableDiffusionXL": StableDiffusionXLImg2ImgPipeline,
    }


class AutoPipelineForInpainting(_AutoPipeline):
    """The pipeline that paints parts of pictures anew, by a folder's model_index.json.

    >>> from votive.models.diffusion import AutoPipelineForInpainting
    >>> sorted(AutoPipelineForInpainting.kinds)
    ['StableDiffusion']
    """

    kinds: ClassVar[dict[str, type[DiffusionPipeline]]] = {"StableDiffusion": StableDiffusionInpaintPipeline}
