"""What `convert` does: open weights, or a model, of any format; write them in another.

Knows formats by their names and which functions read and write them; prints nothing but notes.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..io import WeightSource
from . import UsageError

Report = Callable[[str, int], None]
Note = Callable[[str], None]

SUFFIXES = {
    ".safetensors": "safetensors",
    ".npz": "npz",
    ".npy": "npy",
    ".gguf": "gguf",
    ".bin": "llama2c",
    ".pt": "torch",
    ".pth": "torch",
}
# What a model's folder holds beside its weights and is the same in any format.
_COMPANIONS = (
    "generation_config.json",
    "tokenizer*",
    "vocab.*",
    "merges.txt",
    "*.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template*",
    "preprocessor_config.json",
    "modules.json",
    "*sentence*.json",
)
_PLAIN = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "float64": "F64"}


@dataclass
class Input:
    """What is converted. `config` is None where only tensors are known, not their model."""

    path: Path
    kind: str
    weights: WeightSource
    file: Any
    config: dict[str, Any] | None = None
    tokenizer: Path | None = None


def open_input(path: str, keep_names: bool, note: Note) -> Input:
    """The weights at a path, under Hugging Face names where the model is known."""
    from .inputs import open_path

    found = open_path(path)
    if found.source is None:
        raise ValueError(f"{path}: {found.kind} holds no tensors to convert.")
    made = Input(found.path, found.kind, found.source, found.source)
    folder = found.path if found.path.is_dir() else found.path.parent
    if found.kind == "gguf":
        if not keep_names:
            _as_model(made, note)
    elif found.kind == "llama2c":
        made.config, made.tokenizer = dict(found.source.config), folder
    elif (folder / "config.json").is_file() and not keep_names:
        config = json.loads((folder / "config.json").read_bytes())
        if isinstance(config, dict) and "model_type" in config:
            made.config, made.tokenizer = config, folder
    return made


def _as_model(made: Input, note: Note) -> None:
    from ..models.gguf_names import as_files, from_gguf

    try:
        made.config, weights = from_gguf(made.file)
        made.weights = as_files(made.config, weights)
        made.tokenizer = made.file.path
    except ValueError as e:
        note(f"names stay as they are: {e}")


class ReportingSource(WeightSource):
    """A source that tells when a tensor has been read, and keeps no memory of its file.

    Tensors are copied: mapped ones would fill memory with the file while it is converted.
    """

    def __init__(self, source: WeightSource, report: Report) -> None:
        self.source, self.report, self.metadata = source, report, source.metadata

    def names(self) -> list[str]:
        return self.source.names()

    def info(self, name: str) -> Any:
        return self.source.info(name)

    def _read(self, name: str) -> Any:
        info = self.info(name)
        whole = self.source._read_part(name, ...) if info.shape else self.source._read(name)
        self.report(name, info.nbytes)
        return whole

    def _read_part(self, name: str, index: Any) -> Any:
        return self.source._read_part(name, index)


@dataclass
class Request:
    """How to write: the format, types of numbers, sizes of files."""

    format: str
    dtype: str | None = None
    quantize: str | None = None
    imatrix: str | None = None
    max_shard_size: str | None = None
    report: Report = lambda name, nbytes: None
    note: Note = lambda text: None


def format_of(out: str, given: str | None) -> str:
    """The format that a name's ending means; a name without one is a folder."""
    if given is not None:
        return given
    path = Path(out)
    if path.is_dir() or out.endswith("/") or not path.suffix:
        return "folder"
    if path.suffix.lower() not in SUFFIXES:
        known = ", ".join(sorted(SUFFIXES))
        raise UsageError(f"{path.suffix} is not a known format; use {known}, or a folder")
    return SUFFIXES[path.suffix.lower()]


def write(made: Input, out: Path, request: Request) -> None:
    """Write what was open_input."""
    if request.quantize is not None and request.format != "gguf":
        raise UsageError(f"--quantize is for GGUF files, not for {request.format}")
    if request.quantize is not None and request.dtype is not None:
        raise UsageError("--quantize and --dtype exclude each other")
    if request.imatrix is not None and request.quantize is None:
        raise UsageError("--imatrix weighs errors of --quantize, which is not given")
    if request.max_shard_size is not None and request.format != "folder":
        raise UsageError(f"--max-shard-size is for folders, not for {request.format}")
    _WRITERS[request.format](made, out, request)


def _torch(made: Input, out: Path, request: Request) -> None:
    raise UsageError(
        ".pt and .pth files are pickles, which can run code when they are read, so votive writes "
        "none; write .safetensors, which torch programs read as well"
    )


def _safetensors(made: Input, out: Path, request: Request) -> None:
    from ..io.streamed import write_safetensors

    write_safetensors(made.weights, out, dtype=request.dtype, metadata=_text(made), report=request.report)


def _npz(made: Input, out: Path, request: Request) -> None:
    from ..io.streamed import write_npz

    names = [n for n in made.weights.names() if _dtype(made, n).startswith(("bfloat", "float8"))]
    if names and request.dtype in (None, "bfloat16"):
        request.note(f"NumPy has no bfloat16 or float8: {len(names)} tensors become float32")
    write_npz(made.weights, out, dtype=request.dtype, report=request.report)


def _dtype(made: Input, name: str) -> str:
    return str(made.weights.info(name).dtype).removeprefix("votive.")


def _npy(made: Input, out: Path, request: Request) -> None:
    from ..io import npy

    names = made.weights.names()
    if len(names) != 1:
        raise UsageError(f".npy holds one tensor, not {len(names)}; pick one with --tensor")
    tensor = made.weights.tensor(names[0])
    if request.dtype is not None and tensor.dtype.is_floating_point:
        import votive

        tensor = tensor.to(getattr(votive, request.dtype))
    npy.save(out, tensor)
    request.report(names[0], made.weights.info(names[0]).nbytes)


def _folder(made: Input, out: Path, request: Request) -> None:
    from ..io.streamed import write_safetensors
    from ..models.checkpoint import write_json

    copied = made.kind not in ("gguf", "llama2c") and made.tokenizer and made.tokenizer.is_dir()
    # Read before anything is written, so that what is wrong with it leaves nothing behind.
    tokenizer = None if copied or made.config is None else _tokenizer(made, request.note)
    out.mkdir(parents=True, exist_ok=True)
    write_safetensors(
        made.weights,
        out,
        dtype=request.dtype,
        metadata=_text(made),
        max_shard_size=request.max_shard_size or "5GB",
        report=request.report,
    )
    if made.config is None:
        request.note("the model is not known: the folder holds weights only, no config.json")
        return
    config = dict(made.config)
    types = {_dtype(made, n) for n in made.weights.names() if "float" in _dtype(made, n)}
    if request.dtype is not None or len(types) == 1:
        config.pop("torch_dtype", None)
        config["dtype"] = request.dtype or types.pop()
    write_json(out / "config.json", config)
    if copied:
        _copy_companions(made.tokenizer, out)
    elif tokenizer is not None:
        tokenizer.save_pretrained(out)


def _copy_companions(folder: Path | None, out: Path) -> None:
    if folder is None or folder.resolve() == out.resolve():
        return
    for pattern in _COMPANIONS:
        for path in folder.glob(pattern):
            if path.is_file():
                shutil.copyfile(path, out / path.name)
    if (folder / "modules.json").is_file():
        # Sentence encoders keep what follows the model in folders such as 1_Pooling.
        for part in folder.glob("[0-9]_*"):
            shutil.copytree(part, out / part.name, dirs_exist_ok=True)


def _gguf(made: Input, out: Path, request: Request) -> None:
    from ..io import gguf

    kind = request.quantize or (_PLAIN[request.dtype] if request.dtype else None)
    if made.kind == "gguf" and _untouched(made):
        # The same model: names, order of rows and metadata stay, blocks are copied or made anew.
        metadata, weights = dict(made.file.typed_metadata()), made.file
    elif made.config is not None:
        metadata, weights = _gguf_model(made, request)
    else:
        metadata, weights = {}, ReportingSource(made.weights, request.report)
        if made.kind == "gguf":
            metadata = dict(made.file.typed_metadata())
        request.note("the model is not known: the file holds tensors under their own names")
    from ..backends.common.blocks.encode import FITTED
    from ..models.gguf_types import mixture

    plain = {k: getattr(v, "value", v) for k, v in metadata.items()}
    choose, type_metadata = mixture(kind, plain, weights.names(), weighed=request.imatrix is not None)
    same = kind is None and weights is made.file
    importance = None
    if request.imatrix is not None:
        infos = [weights.info(n) for n in weights.names()]
        planned = {choose(i.name, tuple(i.shape), i.dtype) for i in infos}
        if not {t.lower() for t in planned if t is not None} & FITTED:
            raise ValueError(f"{request.quantize} is rounded as it is; leave out --imatrix.")
        importance = _importance(request.imatrix, weights, type_metadata)
    gguf.write(out, weights, {**metadata, **type_metadata}, types=None if same else choose, importance=importance)


def _importance(path: str, weights: WeightSource, metadata: dict[str, Any]) -> Any:
    """The importance of columns by tensors' names; what it came from is noted in the file's metadata."""
    from ..quant import read_importance
    from ..quant.imatrix import ImportanceMatrix, by_all_names, chooser

    read = read_importance(path)
    found = read if isinstance(read, ImportanceMatrix) else ImportanceMatrix(read)
    choose = chooser(by_all_names(found))
    shapes = {name: tuple(weights.info(name).shape) for name in weights.names()}
    count = sum(choose(name, shape) is not None for name, shape in shapes.items())
    if not count:
        raise ValueError(f"{path}: names no weight of this model.")
    metadata["quantize.imatrix.file"] = Path(path).name
    if found.datasets:
        metadata["quantize.imatrix.dataset"] = ", ".join(found.datasets)
    metadata["quantize.imatrix.entries_count"] = count
    metadata["quantize.imatrix.chunks_count"] = found.chunk_count
    return choose


def _untouched(made: Input) -> bool:
    """Whether no tensor was renamed or left out since the file was open_input."""
    from ..models.refitted import Refitted

    return made.weights is made.file or isinstance(made.weights, Refitted)


def _gguf_model(made: Input, request: Request) -> tuple[dict[str, Any], WeightSource]:
    from ..models.gguf_names import to_gguf
    from ..text import to_gguf as tokenizer_metadata

    tokenizer = _tokenizer(made, request.note)
    words = None if tokenizer is None else tokenizer_metadata(tokenizer)
    name = made.path.stem if made.path.is_file() else made.path.resolve().name
    weights = ReportingSource(made.weights, request.report)
    return to_gguf(made.config, weights, tokenizer=words, name=name)


def _llama2c(made: Input, out: Path, request: Request) -> None:
    from ..io import llama2c

    if made.config is None:
        raise UsageError("a llama2.c file needs a Llama with its config.json, not bare tensors")
    if request.dtype not in (None, "float32"):
        raise UsageError("llama2.c files hold float32 only; leave out --dtype")
    llama2c.write(out, ReportingSource(made.weights, request.report), made.config)
    request.note("llama2.c keeps the tokenizer in a file of its own, which is not written")


def _tokenizer(made: Input, note: Note) -> Any:
    from .model_options import read_tokenizer

    if made.tokenizer is None:
        return None
    try:
        return read_tokenizer(made.tokenizer, (made.config or {}).get("vocab_size"))
    except (FileNotFoundError, ValueError) as e:
        note(f"without a tokenizer: {e}")
        return None


def _text(made: Input) -> dict[str, str]:
    """Metadata as safetensors has it: text only, and only what a person would read."""
    from ..io.block_entries import KEY

    if made.kind.startswith("safetensors"):
        # What was in blocks is written as numbers.
        kept = {k: v for k, v in made.weights.metadata.items() if isinstance(v, str) and k != KEY}
        return {"format": "pt", **kept}
    return {"format": "pt"}


_WRITERS: dict[str, Callable[[Input, Path, Request], None]] = {
    "safetensors": _safetensors,
    "npz": _npz,
    "npy": _npy,
    "folder": _folder,
    "gguf": _gguf,
    "llama2c": _llama2c,
    "torch": _torch,
}
