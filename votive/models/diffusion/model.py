"""What networks of diffusion share: loading and saving as diffusers does. Knows no architecture."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import votive
from votive import nn

from ...io.source import WeightSource, as_dtype
from ...tensor import Tensor
from ..checkpoint import write_json
from ..config import StrPath
from ..loading import stored_dtype
from .places import find_folder
from .settings import Configured

WEIGHTS = "diffusion_pytorch_model"
# Asked for in vain: the values with which nothing is asked.
_TAKEN = (
    "low_cpu_mem_usage",
    "resume_download",
    "force_download",
    "offload_state_dict",
    "offload_folder",
    "max_memory",
)


class DiffusionModel(Configured, nn.Module):
    """A network made from a configuration, whose weights files hold by name.

    >>> import tempfile
    >>> from votive.models.diffusion import AutoencoderKL
    >>> vae, folder = AutoencoderKL(block_out_channels=(8,), norm_num_groups=4), tempfile.mkdtemp()
    >>> vae.save_pretrained(folder)
    >>> AutoencoderKL.from_pretrained(folder).config.block_out_channels
    [8]
    """

    main_input: ClassVar[str] = "sample"

    def __init__(self, *args: Any, **values: Any) -> None:
        nn.Module.__init__(self)
        self.configure(args, values)
        self.gradient_checkpointing = False
        self.build()

    def build(self) -> None:
        """Make the layers that the configuration describes."""
        raise NotImplementedError

    @property
    def device(self) -> votive.device:
        """Where the parameters are."""
        return next(self.parameters()).device

    @property
    def dtype(self) -> votive.dtype:
        """The floating-point type of the parameters."""
        return next(p.dtype for p in self.parameters() if p.is_floating_point())

    def num_parameters(self, only_trainable: bool = False) -> int:
        """How many numbers there are; with `only_trainable`, how many are learned."""
        return sum(p.numel() for p in self.parameters() if p.requires_grad or not only_trainable)

    def enable_gradient_checkpointing(self) -> None:
        """Compute the inside of blocks again in backward rather than keep it."""
        self.gradient_checkpointing = True

    def disable_gradient_checkpointing(self) -> None:
        """Keep the inside of blocks for backward."""
        self.gradient_checkpointing = False

    def run_block(self, block: Callable[..., Any], *args: Any) -> Any:
        """A block's result; its inside is not kept where gradient checkpointing is on."""
        if self.gradient_checkpointing and votive.is_grad_enabled():
            from votive.utils.checkpoint import checkpoint

            return checkpoint(block, *args, use_reentrant=False)
        return block(*args)

    @classmethod
    def from_pretrained(
        cls,
        name: StrPath,
        *,
        subfolder: str | None = None,
        dtype: votive.dtype | str | None = None,
        torch_dtype: Any = None,
        device: votive.device | str | None = None,
        variant: str | None = None,
        use_safetensors: bool | None = None,
        ignore_mismatched_sizes: bool = False,
        output_loading_info: bool = False,
        revision: str | None = None,
        token: Any = None,
        cache_dir: StrPath | None = None,
        local_files_only: bool = False,
        **changes: Any,
    ) -> Any:
        """A model from a folder or a repository as diffusers writes them, in evaluation mode.

        `dtype=None` keeps that of the file. `changes` are keys of the configuration. A weight that is missing or has
        another shape is an error unless `ignore_mismatched_sizes`; with `output_loading_info`, a dict of what did not
        fit comes with the model.
        """
        for key in _TAKEN:
            changes.pop(key, None)
        folder = find_folder(
            name,
            [subfolder] if subfolder else None,
            variant,
            revision=revision,
            token=token,
            cache_dir=cache_dir,
            local_files_only=local_files_only,
        )
        folder = folder / subfolder if subfolder else folder
        model = cls.from_config(cls.load_config(folder), **changes)
        if dtype is None and torch_dtype is not None:
            dtype = str(torch_dtype).removeprefix("torch.")
        info = model.load_weights(
            open_model_weights(folder, variant, use_safetensors),
            dtype=dtype,
            device=device,
            ignore_mismatched_sizes=ignore_mismatched_sizes,
        )
        model.__dict__["name_or_path"] = str(name)
        model.eval()
        return (model, info) if output_loading_info else model

    def load_weights(
        self,
        source: WeightSource,
        *,
        dtype: votive.dtype | str | None = None,
        device: votive.device | str | None = None,
        ignore_mismatched_sizes: bool = False,
    ) -> dict[str, Any]:
        """Fill the parameters from a weight source; gives what did not fit, in diffusers' words."""
        from ...io import load_into

        older = self.older_names()
        # A file has the new name or the old one; the new one wins.
        there = set(source.names())
        source = source.renamed(lambda n: older[n] if n in older and older[n] not in there else n)
        wanted = stored_dtype(source) if dtype is None else as_dtype(dtype)
        report = load_into(self, source, strict=False, dtype=wanted, device=device)
        if report.missing or (report.mismatched and not ignore_mismatched_sizes):
            raise ValueError(f"{type(self).__name__}: the weights do not fit.\n{report}")
        if report.unused or report.mismatched:
            warnings.warn(f"{type(self).__name__}: {report}", stacklevel=3)
        if wanted is not None or device is not None:
            self.to(device=device, dtype=wanted)
        return {
            "missing_keys": list(report.missing),
            "unexpected_keys": list(report.unused),
            "mismatched_keys": list(report.mismatched),
            "error_msgs": [],
        }

    def older_names(self) -> dict[str, str]:
        """Names that weights had in older files, and those that they have now."""
        return {}

    def plain_weights(self) -> dict[str, Tensor]:
        """The weights by the names of files: adapted layers as one, merged."""
        from ..saving import _collect

        found: dict[str, Any] = {}
        _collect(self, "", found)
        return {name: value.detach() for name, value in found.items()}

    def save_pretrained(
        self, folder: StrPath, *, variant: str | None = None, max_shard_size: int | str = "10GB"
    ) -> None:
        """Write config.json and the weights as safetensors, in shards if they are large.

        What `nn.apply_lora` adapted is stored merged, as one weight.
        """
        from ...io.safetensors import save_file
        from ...io.sharded import parse_size, split

        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        weights = self.plain_weights()
        stem = f"{WEIGHTS}.{variant}" if variant else WEIGHTS
        sizes = {name: w.numel() * w.dtype.itemsize for name, w in weights.items()}
        shards = split(sizes, parse_size(max_shard_size))
        for old in path.glob(f"{stem}*.safetensors"):
            if re.fullmatch(rf"{re.escape(stem)}(-\d{{5}}-of-\d{{5}})?\.safetensors", old.name):
                old.unlink()
        index = path / f"{WEIGHTS}.safetensors.index{f'.{variant}' if variant else ''}.json"
        index.unlink(missing_ok=True)
        files = [f"{stem}.safetensors"]
        if len(shards) > 1:
            files = [f"{stem}-{i:05d}-of-{len(shards):05d}.safetensors" for i in range(1, len(shards) + 1)]
        for file, names in zip(files, shards, strict=True):
            save_file({n: weights[n] for n in names}, path / file, metadata={"format": "pt"})
        if len(shards) > 1:
            places = {n: file for file, names in zip(files, shards, strict=True) for n in names}
            write_json(index, {"metadata": {"total_size": sum(sizes.values())}, "weight_map": places})
        self.save_config(path)


def open_model_weights(folder: Path, variant: str | None, use_safetensors: bool | None) -> WeightSource:
    """The weights that lie beside a config.json, by diffusers' names of files."""
    from ...io import open_weights
    from ...io.folder import ShardedSource

    dot = f".{variant}" if variant else ""
    names: Mapping[bool, tuple[str, ...]] = {
        True: (
            f"{WEIGHTS}{dot}.safetensors",
            f"{WEIGHTS}.safetensors.index{dot}.json",
            f"{WEIGHTS}{dot}.safetensors.index.json",
        ),
        False: (f"{WEIGHTS}{dot}.bin", f"{WEIGHTS}.bin.index{dot}.json"),
    }
    tried = [n for kind in (True, False) if use_safetensors in (None, kind) for n in names[kind]]
    for name in tried:
        if (folder / name).is_file():
            return ShardedSource(folder / name) if name.endswith(".json") else open_weights(folder / name)
    there = sorted(p.name for p in folder.glob("*") if p.suffix in (".safetensors", ".bin"))
    hint = f" It holds {', '.join(there)}: see variant=." if there else ""
    raise FileNotFoundError(f"{folder} has none of {', '.join(tried)}.{hint}")
