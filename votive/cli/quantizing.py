"""What `quantize` does: reads a model, chooses codes, and writes a file or a folder that appears when it is whole.

Knows formats by who reads and writes them; prints nothing but notes.
"""

from __future__ import annotations

import math
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import UsageError
from .conversion import Input, Note, Request, _copy_companions, _gguf_model, _text, _tokenizer, _untouched, open_input

if TYPE_CHECKING:
    from ..core.blocks import block_dtype
    from ..io import WeightSource
    from ..nn import Module

Bars = Callable[[str, float | None], AbstractContextManager[Any]]
# Tokens that a text gives at most, and in one piece.
CALIBRATE, PIECE = 16_384, 512
# Bytes that stay free beside what is written.
_ROOM = 16 << 20


@dataclass(frozen=True)
class Job:
    """What is asked for."""

    source: str
    out: Path
    kind: str
    type: str
    method: str = "rtn"
    calibrate: str | None = None
    imatrix: str | None = None
    save_imatrix: str | None = None
    tokens: int | None = None
    tokenizer: str | None = None
    note: Note = lambda text: None


def check_out(out: str, force: bool) -> tuple[str, Path]:
    """The format that OUT means, and its path; what is there already is an error unless it may be replaced."""
    path = Path(out)
    if path.suffix.lower() == ".gguf" and not path.is_dir():
        if path.exists() and not force:
            raise FileExistsError(f"{path} already exists; --force replaces it.")
        kind = "gguf"
    elif path.suffix and not path.is_dir() and not out.endswith("/"):
        raise UsageError(f"OUT is a .gguf file or a folder, not {path.name}")
    else:
        if path.is_file():
            raise FileExistsError(f"{path} is a file; the folder needs another name.")
        if path.is_dir() and any(path.iterdir()) and not force:
            raise FileExistsError(f"{path} is not empty; --force replaces the model in it.")
        kind = "folder"
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"{path.parent}: there is no such folder.")
    return kind, path


def quantize(job: Job, bars: Bars) -> dict[str, Any]:
    """Do it; gives sizes and how many tensors became what."""
    made = open_input(job.source, False, job.note)
    if job.tokenizer is not None:
        made.tokenizer = Path(job.tokenizer)
    with made.file:
        _unpack(made)
        before = sum(made.weights.info(n).nbytes for n in made.weights.names())
        if _same(made.path, job.out):
            raise UsageError("OUT is IN; choose another name")
        if any(made.weights.blocks(n) is not None for n in made.weights.names()):
            job.note(f"{job.source} is in blocks already: its numbers are rounded a second time")
        importance = _importance(job, bars)
        write = _by_model if job.method in ("gptq", "awq") else _by_tensor
        write(job, made, importance, bars)
    from ..io import open_weights

    with open_weights(job.out) as source:
        infos = [source.info(n) for n in source.names()]
        blocks = {n: source.blocks(n) for n in source.names()}
        formats = Counter(i.stored.lower() if (found := blocks[i.name]) is None else found.dtype.name for i in infos)
        numel = sum(math.prod(b.shape) if (b := blocks[i.name]) is not None else i.numel for i in infos)
        del blocks
    nbytes = sum(i.nbytes for i in infos)
    return {
        "tensors": len(infos),
        "parameters": numel,
        "nbytes_before": before,
        "nbytes": nbytes,
        "bits_per_weight": 8 * nbytes / max(numel, 1),
        "formats": dict(formats.most_common()),
    }


def _same(a: Path, b: Path) -> bool:
    return b.exists() and os.path.samefile(a, b)


def _unpack(made: Input) -> None:
    """Weights that another library quantized are seen under the names that models have for them."""
    packed = (made.config or {}).get("quantization_config")
    if packed:
        from ..quant.huggingface import quantized_source

        made.weights = quantized_source(made.weights, packed)
        made.config = {k: v for k, v in (made.config or {}).items() if k != "quantization_config"}


# --- what layers are fed ------------------------------------------------------------------------


def load(source: str, *, dequantize: bool = False) -> Module:
    """The language model that a text can be run through, in float32."""
    from ..models import AutoModelForCausalLM
    from .inputs import open_path

    found = open_path(source)
    if found.source is not None:
        found.source.close()
    model: Module = AutoModelForCausalLM.from_pretrained(str(found.path), dtype="float32", dequantize=dequantize)
    return model


def pieces(job: Job, text: str, most: int) -> list[Any]:
    """A text as tensors of token numbers, (1, tokens) each."""
    from .. import tensor
    from .inputs import open_path
    from .model_options import read_tokenizer

    found = open_path(job.source)
    if found.source is not None:
        found.source.close()
    ids = list(read_tokenizer(job.tokenizer or found.path).encode(text))[:most]
    if len(ids) < 2:
        raise ValueError("the text has fewer than two tokens, which predict nothing; give a longer one.")
    parts = [ids[i : i + PIECE] for i in range(0, len(ids), PIECE)]
    return [tensor([part]) for part in parts if len(part) > 1]


def _importance(job: Job, bars: Bars) -> Mapping[str, Any] | None:
    """The importance matrix, from a file or from running the model on a text."""
    if job.imatrix is not None:
        from ..quant import read_importance

        if job.method in ("gptq", "awq"):
            raise UsageError(f"--method {job.method} goes by --calibrate, not by an importance matrix")
        return read_importance(job.imatrix)
    if job.calibrate is None or job.method in ("gptq", "awq"):
        return None
    from ..quant import importance, save_importance
    from .inputs import read_text

    data = pieces(job, read_text(job.calibrate), job.tokens or CALIBRATE)
    with bars("calibrating", len(data)) as bar:
        found = importance(load(job.source), _with_progress(data, bar))
    if job.save_imatrix is not None:
        save_importance(job.save_imatrix, found)
    return found


def _with_progress(items: list[Any], bar: Any) -> Iterator[Any]:
    for item in items:
        yield item
        bar.advance(1)


# --- tensor by tensor ---------------------------------------------------------------------------


def _by_tensor(job: Job, made: Input, importance: Mapping[str, Any] | None, bars: Bars) -> None:
    from ..core.blocks import FORMATS
    from ..quant.files import SourceInBlocks, check_importance, encoder

    if job.kind == "gguf":
        metadata, weights, choose = _as_gguf(job, made, weighed=importance is not None)
        infos = [weights.info(n) for n in weights.names()]
        planned = {i.name: choose(i.name, tuple(i.shape), i.dtype) for i in infos}
        formats = {n: FORMATS[t.lower()] for n, t in planned.items() if t is not None and t.lower() in FORMATS}
        if importance is not None:
            check_importance(importance, {n: (f, tuple(weights.info(n).shape)) for n, f in formats.items()}, job.method)
        check_room(job.out, sum(_nbytes(weights, n, t) for n, t in planned.items()))
        with bars("quantizing", len(formats)) as bar:
            _write_gguf(job.out, weights, metadata, choose, encoder(job.method, importance, _step(bar)))
        return
    formats, transposed = _formats(job, made, weighed=importance is not None)
    if importance is not None:
        shapes = {n: tuple(made.weights.info(n).shape) for n in formats}
        shapes.update({n: (*shapes[n][:-2], shapes[n][-1], shapes[n][-2]) for n in transposed})
        check_importance(importance, {n: (f, shapes[n]) for n, f in formats.items()}, job.method)
    with bars("quantizing", len(formats)) as bar:
        source = SourceInBlocks(made.weights, formats, encoder(job.method, importance, _step(bar)), transposed)
        check_room(job.out, sum(source.info(n).nbytes for n in source.names()))
        with _folder(job, made) as folder:
            from ..io.streamed import write_safetensors

            write_safetensors(source, folder, metadata={**_text(made), **source.metadata}, max_shard_size="5GB")


def _step(bar: Any) -> Callable[[str], None]:
    def done(name: str) -> None:
        bar.label(name)
        bar.advance(1)

    return done


def _as_gguf(job: Job, made: Input, *, weighed: bool = False) -> tuple[dict[str, Any], WeightSource, Any]:
    """Metadata, tensors and types of the GGUF file to write."""
    from ..models.gguf_types import mixture

    if made.kind == "gguf" and _untouched(made):
        metadata, weights = dict(made.file.typed_metadata()), made.file
    elif made.config is not None:
        metadata, weights = _gguf_model(made, Request("gguf", note=job.note))
    else:
        metadata, weights = {}, made.weights
        job.note("the model is not known: the file holds tensors under their own names")
    plain = {k: getattr(v, "value", v) for k, v in metadata.items()}
    choose, told = mixture(job.type, plain, weights.names(), weighed=weighed)
    return {**metadata, **told}, weights, choose


def _nbytes(weights: WeightSource, name: str, type: str | None) -> int:
    from ..io.gguf import tensor_type

    info = weights.info(name)
    return info.nbytes if type is None else tensor_type(type).nbytes(info.numel)


def _write_gguf(out: Path, weights: WeightSource, metadata: dict[str, Any], choose: Any, encode: Any) -> None:
    from ..io import gguf

    gguf.write(out, weights, metadata, types=choose, encode=encode)


def _formats(job: Job, made: Input, *, weighed: bool) -> tuple[dict[str, block_dtype], frozenset[str]]:
    """The format of each weight of the model's linear layers and tables, by its name in the file."""
    from .. import device
    from ..models import auto
    from ..quant.places import places
    from ..quant.recipes import recipe

    if made.config is None:
        raise UsageError("a folder needs a model with its config.json; write tensors alone into a .gguf file")
    config_class, uses = auto._family(made.config["model_type"])
    kind = next(uses[u] for u in ("seq2seq", "causal", *uses) if u in uses)[0]
    with device("meta"):
        model = kind(config_class.from_dict(made.config))
    found = places(model)
    choose = recipe(job.type, {n: p.shape for p in found for n, _ in p.owners}, weighed=weighed)
    by_name = {f"{n}.weight": p for p in found for n, _ in p.owners}
    prefix = f"{model.base_model_prefix}."
    formats, transposed = {}, set()
    for name in made.weights.names():
        place = next((by_name[n] for n in (name, prefix + name, name.removeprefix(prefix)) if n in by_name), None)
        if place is None or tuple(made.weights.info(name).shape) != tuple(place.weight.shape):
            continue
        format = choose(place.name, place.shape)
        if format is None:
            continue
        formats[name] = format
        if place.transposed:
            transposed.add(name)
    if not formats:
        raise ValueError(f"the model has no weight that {job.type} would change.")
    return formats, frozenset(transposed)


@contextmanager
def _folder(job: Job, made: Input) -> Iterator[Path]:
    """A folder beside OUT that takes its place, with everything but weights added, when it is whole."""
    from ..models.checkpoint import write_json
    from ..serialization.atomic import SUFFIX

    tokenizer = None
    copied = made.kind != "gguf" and made.tokenizer is not None and made.tokenizer.is_dir()
    if not copied:
        tokenizer = _tokenizer(made, job.note)
    out = job.out.absolute()
    folder = out.parent / f".{out.name}.{os.urandom(6).hex()}{SUFFIX}"
    folder.mkdir()
    try:
        yield folder
        if made.config is not None and not (folder / "config.json").exists():
            write_json(folder / "config.json", made.config)
        if copied:
            _copy_companions(made.tokenizer, folder)
        elif tokenizer is not None:
            tokenizer.save_pretrained(folder)
        if not out.exists():
            os.rename(folder, out)
            return
        stale = [*out.glob("*.safetensors"), *out.glob("*.safetensors.index.json")]
        names = {p.name for p in folder.iterdir()}
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(out / path.name, ignore_errors=True)
            os.replace(path, out / path.name)
        for path in stale:
            if path.name not in names:
                path.unlink()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_room(out: Path, nbytes: int) -> None:
    """Raise where the disk has not so many bytes free, before any are written."""
    import errno

    from ..core.errors import size_text

    free = shutil.disk_usage(out.absolute().parent).free
    if free < nbytes + _ROOM:
        raise OSError(
            errno.ENOSPC,
            f"{size_text(nbytes)} are needed and {size_text(free)} are free; nothing was written",
            str(out),
        )


# --- as a whole ---------------------------------------------------------------------------------


def _by_model(job: Job, made: Input, importance: object, bars: Bars) -> None:
    """Methods that run the model."""
    from ..io import MemorySource
    from ..models.saving import plain_form
    from ..quant import quantize_
    from .inputs import read_text

    assert importance is None, "methods that run the model take no importance matrix"
    assert job.calibrate is not None, "the arguments were checked"
    if made.config is None:
        raise UsageError(f"--method {job.method} runs the model; IN needs its config.json")
    data = pieces(job, read_text(job.calibrate), job.tokens or CALIBRATE)
    model: Any = load(job.source, dequantize=True)
    with bars("quantizing", None) as bar:
        # Without layers of a new class, which no file describes: inputs are scaled where a norm can do it.
        quantize_(
            model,
            job.type,
            method=job.method,
            data=data,
            folded=job.method == "awq",
            progress=lambda n, i, c: bar.label(n),
        )
    weights, config = plain_form(model)
    check_room(job.out, sum(w.nbytes for w in weights.values()))
    if job.kind == "folder":
        with _folder(job, made) as folder:
            model.save_pretrained(folder)
        return
    whole = Input(made.path, "model", MemorySource(weights), made.file, config.to_dict(), made.tokenizer)
    metadata, source, choose = _as_gguf(job, whole)

    def kept(name: str, shape: tuple[int, ...], dtype: Any) -> str | None:
        # Blocks stay as they were chosen, whatever the recipe for files would say of them.
        found = source.blocks(name)
        return choose(name, shape, dtype) if found is None else found.dtype.name.upper()

    _write_gguf(job.out, source, metadata, kept, None)
