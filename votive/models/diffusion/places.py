"""Where a pipeline's or a model's folder is: on this disk or in a repository. Knows names of files only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..checkpoint import is_repo_id
from ..config import StrPath

# What a folder of a pipeline holds beside weights.
_SMALL = ("*.json", "*.txt", "*.model")


def find_folder(
    name: StrPath,
    subfolders: list[str] | None,
    variant: str | None = None,
    *,
    revision: str | None = None,
    token: Any = None,
    cache_dir: StrPath | None = None,
    local_files_only: bool = False,
) -> Path:
    """The local folder of a name; of a repository, the parts in `subfolders` are fetched (None: what is at its top).

    >>> import tempfile
    >>> from votive.models.diffusion.places import find_folder
    >>> folder = tempfile.mkdtemp()
    >>> str(find_folder(folder, None)) == folder
    True
    """
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if path.is_file():
        raise ValueError(
            f"{name} is a single file; what is read here are folders as diffusers writes them, with a config.json "
            "beside the weights. Convert the file there with from_single_file and save_pretrained."
        )
    if not is_repo_id(str(name)):
        raise FileNotFoundError(
            f"{name} is no folder here, and no repository id such as 'stable-diffusion-v1-5/stable-diffusion-v1-5'."
        )
    try:
        import huggingface_hub as hub
    except ImportError:
        raise ImportError(f"{name} is no local path; pip install huggingface_hub to download models.") from None
    dot = f"*.{variant}*" if variant else "*"
    kinds = [*_SMALL, f"{dot}.safetensors", *([] if variant else ["*.bin"])]
    top = ["model_index.json", "config.json"] if subfolders is not None else kinds
    wanted = top + [f"{sub}/{kind}" for sub in subfolders or () for kind in kinds]
    unwanted = [] if variant else ["*.fp16.*", "*.fp16-*", "*.bf16.*", "*.non_ema.*"]
    options: dict[str, Any] = {"revision": revision, "token": token, "cache_dir": cache_dir}
    options = {key: value for key, value in options.items() if value is not None}
    try:
        found = hub.snapshot_download(
            str(name), allow_patterns=wanted, ignore_patterns=unwanted, local_files_only=local_files_only, **options
        )
    except Exception as e:
        cause = str(e).strip().splitlines()[0] if str(e).strip() else type(e).__name__
        raise OSError(
            f"{name} is not here and could not be downloaded ({cause}). Check the name and the network, or give the "
            "path of a local folder."
        ) from e
    return Path(found)
