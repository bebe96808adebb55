"""What `from_pretrained` does, for models and for the classes that choose one. Knows no architecture."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import votive

from ..io.report import LoadReport
from ..io.source import WeightSource
from .adapter_files import base_of, is_adapter, load_adapter
from .arguments import changed, parse_options
from .checkpoint import Checkpoint, bundled
from .config import Config, StrPath
from .quantizing import quantize

if TYPE_CHECKING:
    from .pretrained import PreTrainedModel


class FromPretrained:
    """A class that loads models: one of them, or one that chooses."""

    @classmethod
    def from_pretrained(
        cls,
        name: StrPath,
        *,
        dtype: votive.dtype | str | None = None,
        device: votive.device | str | None = None,
        config: Config | None = None,
        strict: bool | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        dequantize: bool | None = None,
        **options: Any,
    ) -> Any:
        """A model from a folder, a file, the name of a bundled model or a repository id.

        `dtype=None` keeps that of the file. On the CPU, weights in blocks of few bits stay as they are in the file and
        compute so, with numbers of `dtype` (float32) around them; with `dequantize=True`, and on other devices unless
        `dequantize=False`, they become numbers. With
        `strict=False`, weights that are missing keep their start values and a warning tells which;
        with `ignore_mismatched_sizes=True`, those of another shape as well. Other options are
        those of transformers that have a meaning here, and fields of the configuration.
        The model comes in evaluation mode; with `output_loading_info=True` a dict that tells what
        did not fit comes with it. A folder with a PEFT adapter gives its base, adapted, where the
        base is found.
        """
        options |= {"dtype": dtype, "device": device, "strict": strict}
        options["dequantize"] = dequantize
        options |= {"revision": revision, "local_files_only": local_files_only}
        return cls._load(name, config, options)

    @classmethod
    def _class_for(cls, model_type: str, architectures: list[str] | None = None) -> type[PreTrainedModel]:
        """The class of models that files of such a kind hold."""
        raise NotImplementedError

    @classmethod
    def _config_for(cls, values: dict[str, Any]) -> Config:
        """The configuration that a file describes."""
        raise NotImplementedError

    @classmethod
    def _load(cls, name: StrPath, config: Config | None, options: dict[str, Any]) -> Any:
        op = f"{cls.__name__}.from_pretrained"
        given = parse_options(op, options)
        folder = Path(name).expanduser()
        if is_adapter(folder):
            base = base_of(folder)
            if base is not None and (Path(base).expanduser().exists() or base in bundled()):
                model = cls._load(base, config, {**options, "output_loading_info": False})
                load_adapter(model, folder)
                return (model, _loading_info(model)) if given.output_loading_info else model
        if given.gguf_file is not None:
            name = _inside(name, given.gguf_file, given.places)
        found = Checkpoint.find(name, **given.places).chosen(given.variant, given.use_safetensors)
        config = cls._config_for(found.config) if config is None else config
        config = changed(op, config, given.changes)
        model = cls._class_for(config.model_type, config.architectures).from_checkpoint(
            found,
            dtype=given.dtype,
            device=given.device,
            config=config,
            strict=given.strict,
            ignore_mismatched_sizes=given.ignore_mismatched_sizes,
            dequantize=given.dequantize,
            device_map=given.device_map,
            max_memory=given.max_memory,
        )
        if given.use_cache is not None:
            model.generation_config.use_cache = given.use_cache
        if given.quantization is not None:
            quantize(model, given.quantization)
        return (model, _loading_info(model)) if given.output_loading_info else model


def _inside(name: StrPath, file: str, places: dict[str, Any]) -> Path:
    """A file of a folder or a repository."""
    folder = Path(name).expanduser()
    if not folder.is_dir():
        folder = Checkpoint.folder_of(name, **places)
    if not (folder / file).is_file():
        there = ", ".join(sorted(p.name for p in folder.glob("*.gguf"))) or "none"
        raise FileNotFoundError(f"{name} has no file {file!r}; of GGUF files it has {there}.")
    return folder / file


def _loading_info(model: PreTrainedModel) -> dict[str, Any]:
    """What did not fit while loading, in the words of transformers."""
    report: LoadReport = model.__dict__["_report"]
    return {
        "missing_keys": set(report.missing),
        "unexpected_keys": set(report.unused),
        "mismatched_keys": set(report.mismatched),
        "error_msgs": [],
    }


def fill(
    model: PreTrainedModel,
    source: WeightSource,
    dtype: votive.dtype | None,
    device: votive.device | str | None,
    strict: bool | None,
    ignore_mismatched_sizes: bool,
    dequantize: bool | None,
) -> LoadReport:
    """Fill the parameters of a model from weights that bear their names."""
    from ..io import load_into

    if dequantize is None:
        dequantize = device is not None and votive.device(device).type != "cpu"
    report = load_into(model, source, strict=False, dtype=dtype, device=device, blocks=not dequantize)
    fresh = strict is None and starts_fresh(model, report.missing)
    refused = bool(report.missing) and (strict or strict is None) and not fresh
    if (report.mismatched and not ignore_mismatched_sizes) or refused:
        hint = (
            "\nWith ignore_mismatched_sizes=True those of another shape keep their start values."
            if report.mismatched and not report.missing
            else ""
        )
        raise ValueError(f"{type(model).__name__}: the weights do not fit.\n{report}{hint}")
    model.__dict__["_report"] = report
    advice = ""
    if fresh:
        start(model, report.missing)
        advice = "\nWhat is missing has start values: train the model before you use it."
    if report.missing or report.unused or report.mismatched:
        warnings.warn(f"{type(model).__name__}: {report}{advice}", stacklevel=4)
    if dtype is not None or device is not None:
        model.to(device=device, dtype=dtype)
    return report


# Heads that are made for a task of one's own: nobody expects them in the file of another.
_TASK_HEADS = re.compile(r"Classification|QuestionAnswering|MultipleChoice|NextSentence|Detection|Segmentation|CTC")


def starts_fresh(model: PreTrainedModel, missing: list[str]) -> bool:
    """Whether all that is missing belongs to a head that is trained for a task, to a pooler or a backbone's norms.

    >>> from votive.models.loading import starts_fresh
    >>> model = votive.models.BertForSequenceClassification(votive.models.BertConfig(
    ...     vocab_size=8, hidden_size=4, num_hidden_layers=1, num_attention_heads=1, intermediate_size=4))
    >>> starts_fresh(model, ["classifier.weight"]), starts_fresh(model, ["bert.encoder.layer.0.output.dense.bias"])
    (True, False)
    """
    prefix = f"{model.base_model_prefix}."
    headed = hasattr(model, model.base_model_prefix) and _TASK_HEADS.search(type(model).__name__) is not None
    return bool(missing) and all(
        ".pooler." in f".{name}" or name.startswith("hidden_states_norms.") or (headed and not name.startswith(prefix))
        for name in missing
    )


def start(model: PreTrainedModel, missing: list[str]) -> None:
    """Start values for modules whose weights are missing; the others were made without any."""
    for path in dict.fromkeys(name.rpartition(".")[0] for name in missing):
        module = model.get_submodule(path)
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
        model.init_weights(module)


@contextmanager
def sizes_in_memory_errors(name: str, config: Config) -> Iterator[None]:
    """Say with what sizes a model does not fit into memory."""
    try:
        yield
    except (MemoryError, OverflowError) as error:
        sizes = ", ".join(
            f"{key}={getattr(config, key):,}"
            for key in ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers")
            if isinstance(getattr(config, key, None), int)
        )
        raise MemoryError(f"{name}: a model of {sizes} does not fit into memory ({error}).") from error


def differ(source: WeightSource, a: str, b: str) -> bool:
    """Whether two tensors of a file hold other values."""
    if source.info(a).shape != source.info(b).shape:
        return True
    # Most that differ do so from the start.
    parts = (slice(0, 8), slice(None)) if source.info(a).shape else (...,)
    return any(not votive.equal(source.slice(a, part), source.slice(b, part)) for part in parts)


def stored_dtype(source: WeightSource) -> votive.dtype | None:
    """The type of the first weights in a file that are no whole numbers."""
    found = (source.info(name).dtype for name in source.names())
    return next((dtype for dtype in found if dtype.is_floating_point), None)
