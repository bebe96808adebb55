"""Where a model's configuration and weights are: a folder, a file, the package, or a repository.

Knows files; knows no architecture.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import votive

from ..serialization.atomic import replacing
from ..serialization.container import FileFormatError
from .config import NAME, StrPath, read_json

CTRANSLATE2 = "model.bin"
BUNDLED = Path(__file__).parent / "bundled"
# What a model folder may hold that is of use here.
_WANTED = ["*.json", "*.safetensors", "*.model", "*.txt", "*.jinja", "*.gguf", "model.bin"]
_FALLBACK = ["pytorch_model*.bin"]


@dataclass
class Checkpoint:
    """A model that was found but not read: its configuration, and how to open its weights.

    `tokenizer` tells a tokenizer where to look: a folder, or the file that holds all.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> votive.models.GPT2Config(n_embd=64, n_head=4).save_pretrained(folder)
    >>> votive.models.Checkpoint.find(folder).config["n_embd"]
    64
    """

    name: str
    path: Path
    config: dict[str, Any]
    weights: Callable[[], Any]
    tokenizer: Path
    dtype: Any = None
    generation_config: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def find(
        cls,
        name: StrPath,
        *,
        revision: str | None = None,
        local_files_only: bool = False,
        subfolder: str | None = None,
        token: Any = None,
        cache_dir: StrPath | None = None,
        force_download: bool = False,
    ) -> Checkpoint:
        """Look for a path first, then for a bundled model, then for a repository id.

        `subfolder` is below the folder or the repository; the other arguments are for repositories.
        """
        path = Path(name).expanduser()
        if path.is_file():
            return _file(str(name), path)
        hub = {"token": token, "cache_dir": cache_dir, "force_download": force_download}
        folder = Checkpoint.folder_of(
            name, revision=revision, local_files_only=local_files_only, subfolder=subfolder, **hub
        )
        return _folder(str(name), folder)

    @staticmethod
    def folder_of(
        name: StrPath,
        *,
        revision: str | None = None,
        local_files_only: bool = False,
        subfolder: str | None = None,
        **hub: Any,
    ) -> Path:
        """The folder that a path, the name of a bundled model or a repository id means."""
        path = Path(name).expanduser()
        if subfolder and path.is_dir():
            path = path / subfolder
            if not path.is_dir():
                raise FileNotFoundError(f"{name} has no subfolder {subfolder!r}.")
        if path.is_dir():
            return path
        if (BUNDLED / str(name) / NAME).is_file() and not path.is_absolute():
            return BUNDLED / str(name)
        if not is_repo_id(str(name)):
            raise FileNotFoundError(
                f"{name} is no folder or file here, no bundled model ({', '.join(bundled())}), "
                "and no repository id such as 'Qwen/Qwen3-0.6B'."
            )
        return download(str(name), revision, local_files_only, subfolder, **hub)

    def chosen(self, variant: str | None = None, use_safetensors: bool | None = None) -> Checkpoint:
        """The same with the weights of a variant (`model.fp16.safetensors`), or of one format."""
        if variant is None and use_safetensors is None:
            return self
        from ..io import open_weights

        kind = "torch" if use_safetensors is False else "safetensors"
        if variant is None:
            return replace(self, weights=lambda: open_weights(self.path, kind))
        names = {
            "safetensors": (f"model.safetensors.index.{variant}.json", f"model.{variant}.safetensors"),
            "torch": (f"pytorch_model.bin.index.{variant}.json", f"pytorch_model.{variant}.bin"),
        }
        kinds = ["safetensors", "torch"] if use_safetensors is None else [kind]
        tried = [name for kind in kinds for name in names[kind]]
        file = next((self.path / n for n in tried if (self.path / n).is_file()), None)
        if file is not None:
            from ..io.folder import ShardedSource

            opened = ShardedSource if file.suffix == ".json" else open_weights
            return replace(self, weights=lambda: opened(file))
        raise FileNotFoundError(f"{self.name} has no variant {variant!r}: none of {', '.join(tried)} is there.")


def bundled() -> list[str]:
    """Names of the models that come with the package.

    >>> isinstance(votive.models.bundled(), list)
    True
    """
    return sorted(p.parent.name for p in BUNDLED.glob(f"*/{NAME}"))


def is_repo_id(name: str) -> bool:
    """Whether a name may be one on the model hub: `name` or `owner/name`.

    >>> from votive.models.checkpoint import is_repo_id
    >>> is_repo_id("Qwen/Qwen3-0.6B"), is_repo_id("./folder"), is_repo_id("a/b/c")
    (True, False, False)
    """
    return re.fullmatch(r"[A-Za-z0-9][\w.-]*/[\w.-]+", name) is not None and ".." not in name


def download(
    name: str, revision: str | None = None, local_files_only: bool = False, subfolder: str | None = None, **more: Any
) -> Path:
    """The local folder of a repository, fetched if needed; a progress bar shows how far it is."""
    try:
        import huggingface_hub as hub
    except ImportError:
        raise ImportError(f"{name} is no local path; pip install huggingface_hub to download models.") from None
    options: dict[str, Any] = {"revision": revision, "local_files_only": local_files_only}
    options |= {key: value for key, value in more.items() if value}
    below = f"{subfolder}/" if subfolder else ""
    wanted, fallback = ([below + p for p in names] for names in (_WANTED, _FALLBACK))
    try:
        folder = Path(hub.snapshot_download(name, allow_patterns=wanted, **options)) / below
        if not _weight_files(folder):
            hub.snapshot_download(name, allow_patterns=fallback, **options)
    except Exception as e:
        cause = str(e).strip().splitlines()[0] if str(e).strip() else type(e).__name__
        raise OSError(
            f"{name} is not here and could not be downloaded ({cause}). Check the name and the "
            "network, or give the path of a local folder."
        ) from e
    return folder


def _weight_files(folder: Path) -> list[Path]:
    names = ("*.safetensors", "*.safetensors.index.json", "*.gguf", "pytorch_model*.bin", CTRANSLATE2)
    return [p for pattern in names for p in sorted(folder.glob(pattern))]


def _folder(name: str, folder: Path) -> Checkpoint:
    if not (folder / NAME).is_file():
        from ..io.gguf.split import first_parts

        files = first_parts(sorted(folder.glob("*.gguf")))
        if len(files) == 1:
            return _file(name, files[0])
        if (folder / "adapter_config.json").is_file():
            base = read_json(folder / "adapter_config.json").get("base_model_name_or_path")
            raise FileNotFoundError(
                f"{folder} is a PEFT adapter of {base!r}, not a whole model. Load that model, then "
                f"put the adapter into it: votive.models.load_adapter(model, {str(name)!r})."
            )
        more = f"; it holds {len(files)} GGUF files, name one of them" if files else ""
        raise FileNotFoundError(f"{folder} has no {NAME}{more}.")
    config = read_json(folder / NAME)
    if "model_type" not in config and (folder / CTRANSLATE2).is_file():
        return _ctranslate2(name, folder / CTRANSLATE2, config)

    def weights() -> Any:
        from ..io import open_weights

        return open_weights(folder)

    settings = folder / "generation_config.json"
    return Checkpoint(
        name, folder, config, weights, folder, _config_dtype(config), read_json(settings) if settings.is_file() else {}
    )


def _file(name: str, path: Path) -> Checkpoint:
    with open(path, "rb") as f:
        magic = f.read(4)
    if magic == b"GGUF":
        from ..io import gguf
        from .gguf_names import from_gguf

        config, source = from_gguf(gguf.open(path))
        return Checkpoint(name, path, config, lambda: source, path, votive.float32)
    config_file = path.parent / NAME
    from ..io.formats import detect

    kind = detect(path)
    if kind is not None and kind.name == "ctranslate2":
        stored = read_json(config_file) if config_file.is_file() else {}
        return _ctranslate2(name, path, stored)
    if kind is not None and kind.name == "torch" and path.suffix == ".pt":
        found = _openai(name, path)
        if found is not None:
            return found
    if not config_file.is_file():
        from ..io import llama2c

        if path.suffix == ".bin":
            stories = llama2c.open(path)
            return Checkpoint(name, path, stories.config, lambda: stories, path.parent, votive.float32)
        if kind is None:
            raise FileFormatError(
                f"{path} is in no format that is known here: a GGUF or llama2.c file, or weights "
                f"(safetensors, torch, npz) beside their {NAME}."
            )
        raise FileNotFoundError(f"{path} holds weights, but there is no {NAME} beside it.")
    config = read_json(config_file)

    def weights() -> Any:
        from ..io import open_weights

        return open_weights(path)

    return Checkpoint(name, path, config, weights, path.parent, _config_dtype(config))


def _ctranslate2(name: str, path: Path, stored: dict[str, Any]) -> Checkpoint:
    """A model that CTranslate2 has converted; its config.json tells less than others."""
    from ..io import ctranslate2
    from .whisper_names import ctranslate2_checkpoint

    config, settings, source = ctranslate2_checkpoint(ctranslate2.open(path), stored)
    # Half precision is how they are stored; int8 and float16 both compute as float32.
    return Checkpoint(name, path, config, lambda: source, path.parent, votive.float32, settings)


def _openai(name: str, path: Path) -> Checkpoint | None:
    """A Whisper as OpenAI publishes it, or None where a file of torch is something else."""
    from ..io import open_weights
    from .whisper_names import openai_checkpoint

    source = open_weights(path)
    found = openai_checkpoint(source, path.stem)
    if found is None:
        source.close()
        return None
    return Checkpoint(name, path, found[0], lambda: source, path.parent, votive.float32, found[1])


def _config_dtype(config: dict[str, Any]) -> Any:
    """The type that a configuration says its weights have; None where it does not."""
    stored = config.get("dtype") or config.get("torch_dtype")
    return None if stored is None else getattr(votive, str(stored).removeprefix("torch."), None)


def write_json(path: Path, values: dict[str, Any] | list[Any]) -> None:
    """Write an object or a list, in one step."""
    with replacing(path) as f:
        f.write((json.dumps(values, indent=2, sort_keys=True) + "\n").encode())
