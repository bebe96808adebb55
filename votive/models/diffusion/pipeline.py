"""What pipelines share: their parts, their folders, progress. Knows no way to make a picture."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

import votive
from votive import nn

from ..checkpoint import write_json
from ..config import StrPath, read_json
from .model import DiffusionModel
from .places import find_folder
from .schedulers import base as scheduler_base
from .schedulers.base import Scheduler

INDEX, CHECKER = "model_index.json", "StableDiffusionSafetyChecker"
_TAKEN = ("low_cpu_mem_usage", "resume_download", "force_download", "offload_state_dict", "offload_folder")
_KINDS: dict[str, type[DiffusionPipeline]] = {}


class DiffusionPipeline:
    """A denoiser with what it needs beside it: made from parts, or from a folder that diffusers wrote.

    `DiffusionPipeline.from_pretrained(folder)` gives the pipeline that the folder's model_index.json names.

    >>> from votive.models.diffusion import DDPMPipeline, DDPMScheduler, UNet2DModel
    >>> unet = UNet2DModel(sample_size=4, block_out_channels=(8,), norm_num_groups=4, layers_per_block=1,
    ...     down_block_types=("DownBlock2D",), up_block_types=("UpBlock2D",))
    >>> sorted(DDPMPipeline(unet, DDPMScheduler()).components)
    ['scheduler', 'unet']
    """

    # Parts in the order of the constructor, those of `optional` may be None.
    parts: ClassVar[tuple[str, ...]] = ()
    optional: ClassVar[tuple[str, ...]] = ()
    # Plain values of the constructor, which stand in model_index.json as they are.
    settings: ClassVar[tuple[str, ...]] = ()
    # Where it came from.
    name_or_path: str = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _KINDS[cls.__name__] = cls

    def register_modules(self, **parts: Any) -> None:
        """Take the parts of the constructor."""
        for name, part in parts.items():
            if part is None and name not in self.optional:
                raise ValueError(f"{type(self).__name__}: {name} is None, and nothing can be made without it.")
            setattr(self, name, part)
        self._progress: dict[str, Any] = {}

    @property
    def components(self) -> dict[str, Any]:
        """The parts by name, such as another pipeline's constructor takes them."""
        return {name: getattr(self, name) for name in self.parts}

    @property
    def device(self) -> votive.device:
        """Where the networks are."""
        return next((next(m.parameters()).device for m in self._networks()), votive.device("cpu"))

    @property
    def dtype(self) -> votive.dtype:
        """The type of the networks' numbers."""
        return next((next(m.parameters()).dtype for m in self._networks()), votive.float32)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move or convert all networks, as `Module.to` does."""
        for module in self._networks():
            module.to(*args, **kwargs)
        return self

    def _networks(self) -> Iterator[nn.Module]:
        return (part for part in self.components.values() if isinstance(part, nn.Module))

    def set_progress_bar_config(self, **options: Any) -> None:
        """`disable=True` shows no bar; `desc` is its text."""
        unknown = sorted(options.keys() - {"disable", "desc", "leave"})
        if unknown:
            raise TypeError(f"set_progress_bar_config: {unknown[0]!r} is not known; there are disable, desc and leave.")
        self._progress = dict(options)

    @contextmanager
    def progress_bar(self, total: int) -> Iterator[Callable[[], None]]:
        """While the block runs a bar on the terminal; the function goes on by one step."""
        disable = self._progress.get("disable")
        if disable or (disable is None and not sys.stderr.isatty()):
            yield lambda: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        text = TextColumn("{task.description}")
        columns = (text, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        gone = not self._progress.get("leave", True)
        with Progress(*columns, console=Console(stderr=True), transient=gone) as bar:
            task = bar.add_task(self._progress.get("desc", "Denoising"), total=total)
            yield lambda: bar.advance(task)

    @classmethod
    def from_pretrained(
        cls,
        name: StrPath,
        *,
        dtype: votive.dtype | str | None = None,
        torch_dtype: Any = None,
        device: votive.device | str | None = None,
        variant: str | None = None,
        use_safetensors: bool | None = None,
        revision: str | None = None,
        token: Any = None,
        cache_dir: StrPath | None = None,
        local_files_only: bool = False,
        **parts: Any,
    ) -> Any:
        """The pipeline of a folder or a repository; `parts` given by name replace those of the folder."""
        for key in _TAKEN:
            parts.pop(key, None)
        if dtype is None and torch_dtype is not None:
            dtype = str(torch_dtype).removeprefix("torch.")
        places = {
            "revision": revision, "token": token, "cache_dir": cache_dir, "local_files_only": local_files_only,
        }  # fmt: skip
        folder = find_folder(name, [], variant, **places)
        index = read_json(folder / INDEX)
        kind = cls._kind(index, folder)
        known = (*kind.parts, *kind.settings)
        unknown = sorted(parts.keys() - set(known))
        if unknown:
            raise TypeError(
                f"{kind.__name__}.from_pretrained: there is no part {unknown[0]!r}; there are {', '.join(known)}."
            )
        kind.check_index(index, folder)
        wanted = [p for p in kind.parts if p not in parts and _class_of(index, p) is not None]
        if not Path(name).expanduser().is_dir():
            folder = find_folder(name, wanted, variant, **places)
        options = {"dtype": dtype, "device": device, "variant": variant, "use_safetensors": use_safetensors}
        made = {p: load_part(kind.__name__, p, _class_of(index, p), folder, options) for p in wanted}
        absent = [p for p in kind.parts if p not in made and p not in parts and p not in kind.optional]
        if absent:
            raise ValueError(f"{folder}: {INDEX} names no {absent[0]}, which {kind.__name__} needs; pass {absent[0]}=.")
        plain = {k: parts.get(k, index.get(k)) for k in kind.settings if k in parts or k in index}
        found = kind(**{p: {**made, **parts}.get(p) for p in kind.parts}, **plain)
        found.name_or_path = str(name)
        return found

    @classmethod
    def _kind(cls, index: dict[str, Any], folder: Path) -> type[DiffusionPipeline]:
        # Pipelines make themselves known when their files are read.
        from . import auto, unconditional

        del auto, unconditional
        if cls is not DiffusionPipeline:
            return cls
        named = str(index.get("_class_name"))
        if named not in _KINDS:
            known = ", ".join(sorted(k for k, v in _KINDS.items() if v.parts))
            raise ValueError(f"{folder}: {INDEX} asks for {named}, which is not here; there are {known}.")
        return _KINDS[named]

    @classmethod
    def check_index(cls, index: dict[str, Any], folder: Path) -> None:
        """Raise where a folder's model_index.json is that of a pipeline with other parts."""
        other = _KINDS.get(str(index.get("_class_name")))
        missing = [p for p in cls.parts if p not in index and p not in cls.optional]
        if missing or (other is not None and other.parts != cls.parts):
            asked = index.get("_class_name")
            raise ValueError(
                f"{cls.__name__}: {folder} is one of {asked}, whose parts are others; load it with that class, or "
                "with DiffusionPipeline, which finds the right one."
            )

    @classmethod
    def from_pipe(cls, pipeline: DiffusionPipeline, **parts: Any) -> Any:
        """A pipeline of this kind with the parts of another one, which they share; `parts` by name replace some.

        >>> from votive.models.diffusion import DDIMPipeline, DDPMPipeline, DDPMScheduler, UNet2DModel
        >>> unet = UNet2DModel(sample_size=4, block_out_channels=(8,), norm_num_groups=4, layers_per_block=1,
        ...     down_block_types=("DownBlock2D",), up_block_types=("UpBlock2D",))
        >>> DDIMPipeline.from_pipe(DDPMPipeline(unet, DDPMScheduler())).unet is unet
        True
        """
        known = (*cls.parts, *cls.settings)
        unknown = sorted(parts.keys() - set(known))
        if unknown or not cls.parts:
            what = f"there is no part {unknown[0]!r}" if unknown else "name the class that it is to be"
            raise TypeError(f"{cls.__name__}.from_pipe: {what}; there are {', '.join(known) or ', '.join(_KINDS)}.")
        given = {name: getattr(pipeline, name) for name in known if hasattr(pipeline, name)}
        absent = [p for p in cls.parts if p not in given and p not in parts and p not in cls.optional]
        if absent:
            raise ValueError(
                f"{cls.__name__}.from_pipe: a {type(pipeline).__name__} has no {absent[0]}; pass {absent[0]}=."
            )
        return cls(**{**dict.fromkeys(cls.parts), **given, **parts})

    def save_pretrained(self, folder: StrPath, *, variant: str | None = None) -> None:
        """Write model_index.json and each part into a folder of its name, as diffusers does."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        index: dict[str, Any] = {"_class_name": type(self).__name__}
        for name, part in self.components.items():
            index[name] = [None, None] if part is None else [_library(part), _written_class(part)]
            if isinstance(part, DiffusionModel):
                part.save_pretrained(path / name, variant=variant)
            elif part is not None:
                part.save_pretrained(path / name)
        write_json(path / INDEX, {**index, **{name: getattr(self, name) for name in self.settings}})

    def __repr__(self) -> str:
        named = ", ".join(f"{k}={type(v).__name__}" for k, v in self.components.items())
        return f"{type(self).__name__}({named})"


def _class_of(index: dict[str, Any], part: str) -> str | None:
    """The class of a part as model_index.json has it; None for none."""
    found = index.get(part)
    if not isinstance(found, list) or len(found) != 2 or found[1] is None:
        return None
    return str(found[1])


def _library(part: Any) -> str:
    if type(part).__name__ == CHECKER:
        return "stable_diffusion"
    return "diffusers" if isinstance(part, DiffusionModel | Scheduler) else "transformers"


def _written_class(part: Any) -> str:
    """The name of a part's class in files."""
    if isinstance(part, votive.text.Tokenizer):
        return str(getattr(part, "config", {}).get("tokenizer_class") or "CLIPTokenizer")
    return type(part).__name__


def load_part(pipeline: str, part: str, kind: str | None, folder: Path, options: dict[str, Any]) -> Any:
    """A part of a pipeline from the subfolder of its name."""
    from votive import models

    from . import autoencoder_kl, unet_2d, unet_2d_condition

    if kind is None:
        return None
    if not (folder / part).is_dir():
        raise FileNotFoundError(
            f"{pipeline}: {folder} has no folder {part}, a {kind} by its {INDEX}; pass another as {part}=, or "
            f"{part}=None to do without where that can be."
        )
    networks: dict[str, Any] = {
        "UNet2DConditionModel": unet_2d_condition.UNet2DConditionModel,
        "UNet2DModel": unet_2d.UNet2DModel,
        "AutoencoderKL": autoencoder_kl.AutoencoderKL,
    }
    schedulers = {k.__name__: k for k in scheduler_base._KINDS}
    texts = ("CLIPTextModel", "CLIPTextModelWithProjection")
    if kind in networks:
        return networks[kind].from_pretrained(folder / part, **options)
    if kind in schedulers:
        return schedulers[kind].from_pretrained(folder / part)
    if kind in texts:
        own = {k: v for k, v in options.items() if v is not None}
        return getattr(models, kind).from_pretrained(folder / part, **own)
    if kind == CHECKER:
        from .safety_checker import StableDiffusionSafetyChecker

        own = {k: v for k, v in options.items() if v is not None}
        return StableDiffusionSafetyChecker.from_pretrained(folder / part, **own)
    if kind in ("CLIPFeatureExtractor", "CLIPImageProcessor", "CLIPImageProcessorFast", "CLIPImageProcessorPil"):
        return models.CLIPImageProcessor.from_pretrained(folder / part)  # type: ignore[attr-defined]
    if kind.removesuffix("Fast") == "CLIPTokenizer":
        return votive.text.Tokenizer.from_pretrained(folder / part)
    known = ", ".join([*networks, *texts, "CLIPTokenizer", "CLIPImageProcessor", CHECKER, *sorted(schedulers)])
    raise ValueError(
        f"{pipeline}: {part} is a {kind}, which is not here; there are {known}. Pass another one as {part}=."
    )
