"""What pipelines share: their parts, their folders, progress. Knows no way to make a picture."""

from __future__ import annotations

import sys
import warnings
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

INDEX = "model_index.json"
_TAKEN = ("low_cpu_mem_usage", "resume_download", "force_download", "offload_state_dict", "offload_folder")
# Parts of folders that judge pictures; they are not here, and their absence is told.
_CHECKERS = ("safety_checker", "feature_extractor")
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
        unknown = sorted(parts.keys() - set(kind.parts))
        if unknown:
            raise TypeError(
                f"{kind.__name__}.from_pretrained: there is no part {unknown[0]!r}; there are {', '.join(kind.parts)}."
            )
        wanted = [p for p in kind.parts if p not in parts and _class_of(index, p) is not None]
        if not Path(name).expanduser().is_dir():
            folder = find_folder(name, wanted, variant, **places)
        options = {"dtype": dtype, "device": device, "variant": variant, "use_safetensors": use_safetensors}
        made = {p: load_part(kind.__name__, p, _class_of(index, p), folder, options) for p in wanted}
        absent = [p for p in kind.parts if p not in made and p not in parts and p not in kind.optional]
        if absent:
            raise ValueError(f"{folder}: {INDEX} names no {absent[0]}, which {kind.__name__} needs; pass {absent[0]}=.")
        judged = [p for p in ("safety_checker",) if p in wanted and made.get(p) is None]
        if judged:
            warnings.warn(
                f"{kind.__name__}: the safety checker of {name} is not here, so pictures are not checked; "
                "safety_checker=None says that this is known.",
                stacklevel=2,
            )
        found = kind(**{p: {**made, **parts}.get(p) for p in kind.parts})
        found.name_or_path = str(name)
        return found

    @classmethod
    def _kind(cls, index: dict[str, Any], folder: Path) -> type[DiffusionPipeline]:
        # Pipelines make themselves known when their files are read.
        from . import stable_diffusion, stable_diffusion_img2img, unconditional

        del stable_diffusion, stable_diffusion_img2img, unconditional
        if cls is not DiffusionPipeline:
            return cls
        named = str(index.get("_class_name"))
        if named not in _KINDS:
            known = ", ".join(sorted(k for k, v in _KINDS.items() if v.parts))
            raise ValueError(f"{folder}: {INDEX} asks for {named}, which is not here; there are {known}.")
        return _KINDS[named]

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
        write_json(path / INDEX, index)

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
    return "diffusers" if isinstance(part, DiffusionModel | Scheduler) else "transformers"


def _written_class(part: Any) -> str:
    """The name of a part's class in files."""
    if isinstance(part, votive.text.Tokenizer):
        return str(getattr(part, "config", {}).get("tokenizer_class") or "CLIPTokenizer")
    return type(part).__name__


def load_part(pipeline: str, part: str, kind: str | None, folder: Path, options: dict[str, Any]) -> Any:
    """A part of a pipeline from the subfolder of its name; None for those that judge pictures."""
    from votive import models

    from . import autoencoder_kl, unet_2d, unet_2d_condition

    if part in _CHECKERS or kind is None:
        return None
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
    if kind.removesuffix("Fast") == "CLIPTokenizer":
        return votive.text.Tokenizer.from_pretrained(folder / part)
    known = ", ".join([*networks, *texts, "CLIPTokenizer", *sorted(schedulers)])
    raise ValueError(
        f"{pipeline}: {part} is a {kind}, which is not here; there are {known}. Pass another one as {part}=."
    )
