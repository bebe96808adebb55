"""What pipelines share: inputs become rows, rows become batches, a model runs them, and results come in order.

A pipeline has three methods: `prepare` makes the rows of an input, `run` asks the model about a batch of rows, and
`finish` makes a result of the rows of an input. An option of a call goes to those of the three that name it, and what
none names to the one that takes any. Knows no task.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import votive

from ..core.similar import similar
from ..models.config import StrPath, read_json
from ..tensor import Tensor

# What rows are padded with, and what any other entry is padded with.
_PADDING, _ELSE = {"special_tokens_mask": 1}, 0


@dataclass
class Row:
    """One row for the model, of which an input may have several; `told` is for `finish`."""

    tensors: dict[str, Tensor]
    told: dict[str, Any] = field(default_factory=dict)
    # What came of it, with a batch of one.
    found: dict[str, Any] = field(default_factory=dict)
    # How long it was in its batch.
    width: int = 0

    def trimmed(self, name: str, side: str) -> Tensor:
        """A result by positions (1, positions, …) without those of padding."""
        value, own = self.found[name], self.tensors["input_ids"].shape[1]
        if own == self.width or value.dim() < 2 or value.shape[1] != self.width:
            return value
        return value[:, self.width - own :] if side == "left" else value[:, :own]


class Pipeline:
    """A model with what prepares its inputs and reads its outputs; made by `votive.pipeline`.

    >>> votive.pipelines.TextClassificationPipeline.task
    'text-classification'
    """

    task: ClassVar[str] = ""
    # Uses of models, as `votive.models.auto` names them; the first that a family has is taken.
    uses: ClassVar[tuple[str, ...]] = ()
    # Parts beside the model that it needs.
    needs: ClassVar[tuple[str, ...]] = ("tokenizer",)
    # Settings of generation that hold where neither the caller nor the model says anything.
    generation: ClassVar[dict[str, Any]] = {}
    # Whether rows of several lengths run one by one, because padding would change what the model says.
    apart: ClassVar[bool] = False
    # Another name for the input.
    other_name: ClassVar[str | None] = None

    def __init__(
        self,
        model: Any,
        tokenizer: Any = None,
        feature_extractor: Any = None,
        image_processor: Any = None,
        *,
        device: int | str | votive.device | None = None,
        batch_size: int = 1,
        **options: Any,
    ) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.feature_extractor, self.image_processor = feature_extractor, image_processor
        for part in self.needs:
            if getattr(self, part) is None:
                raise ValueError(f"{type(self).__name__}: it needs a {part}, and there is none; pass {part}=.")
        if device is not None:
            model.to(device=_device(device))
        model.eval()
        self.batch_size = _positive(type(self).__name__, batch_size)
        self.options: dict[str, Any] = {}
        self.ready()
        self.options = self.sorted_options(options)

    def ready(self) -> None:
        """Check the parts once they are there."""

    @classmethod
    def fitting(cls, model: Any) -> type[Pipeline]:
        """The class for a model, where a task has several."""
        if not callable(getattr(model, "forward", None)):
            raise TypeError(f"{cls.__name__}: model must be a place or a model, got {type(model).__name__}.")
        return cls

    @classmethod
    def read_part(cls, part: str, folder: Path, model: Any) -> Any:
        """A tokenizer or processor of a folder."""
        if part == "tokenizer":
            return votive.text.Tokenizer.from_pretrained(folder)
        if part == "image_processor":
            return votive.models.AutoImageProcessor.from_pretrained(folder)  # type: ignore[attr-defined]
        from .. import speech

        file = folder / "preprocessor_config.json"
        if not file.is_file():
            return speech.WhisperFeatureExtractor.for_model(model)
        kind = str(read_json(file).get("feature_extractor_type") or "WhisperFeatureExtractor")
        if not hasattr(speech, kind):
            raise ValueError(f"{cls.__name__}: {folder} asks for a {kind}, which is not here; pass feature_extractor=.")
        return getattr(speech, kind).from_pretrained(folder)

    @property
    def device(self) -> votive.device:
        """Where the model is."""
        return next(self.model.parameters()).device

    @property
    def dtype(self) -> votive.dtype:
        """The type of the model's numbers."""
        found = (p.dtype for p in self.model.parameters() if p.is_floating_point())
        return next(found, votive.float32)

    def to(self, device: int | str | votive.device) -> Self:
        """Move the model."""
        self.model.to(device=_device(device))
        return self

    def save_pretrained(self, folder: StrPath) -> None:
        """Write the model and what prepares its inputs into a folder."""
        for part in (self.model, self.tokenizer, self.feature_extractor, self.image_processor):
            if part is not None:
                part.save_pretrained(folder)

    # --- what a task says -----------------------------------------------------------------------

    def prepare(self, item: Any) -> Iterable[Row]:
        """The rows of an input."""
        raise NotImplementedError

    def run(self, tensors: dict[str, Tensor]) -> dict[str, Any]:
        """What the model says of a batch."""
        return dict(self.model(**self.accepted(tensors)).items())

    def finish(self, rows: list[Row]) -> Any:
        """The result of an input."""
        raise NotImplementedError

    def one_input(self, inputs: Any) -> bool:
        """Whether something is one input; lists are several unless a task says otherwise."""
        return not isinstance(inputs, list | tuple)

    # --- calls -----------------------------------------------------------------------------------

    def __call__(
        self, inputs: Any = None, *, batch_size: int | None = None, num_workers: int | None = None, **options: Any
    ) -> Any:
        """The result of an input; of a list of them a list, of a generator or dataset a generator.

        `batch_size` rows go through the model at once.
        """
        if num_workers:
            raise ValueError(
                f"{type(self).__name__}: num_workers={num_workers}, but inputs are prepared here; leave it out."
            )
        if inputs is None and self.other_name is not None:
            inputs = options.pop(self.other_name, None)
        if inputs is None:
            raise ValueError(f"{type(self).__name__}: give an input.")
        asked = {**self.options, **self.sorted_options(options)}
        size = self.batch_size if batch_size is None else _positive(type(self).__name__, batch_size)
        if isinstance(inputs, list | tuple) and not self.one_input(inputs):
            return list(self._results(inputs, size, asked))
        if _streams(inputs):
            return self._results(_items(inputs), size, asked)
        return next(self._results([inputs], size, asked))

    def sorted_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """Options that some method takes; others raise."""
        named, rest = self._taken()
        for name in options:
            if name not in named and not rest:
                near = similar(name, sorted(named), 1)
                hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(sorted(named))}."
                raise TypeError(f"{type(self).__name__}: unexpected argument {name!r}{hint}")
        return dict(options)

    def _methods(self) -> tuple[Any, ...]:
        return self.prepare, self.run, self.finish

    def _taken(self) -> tuple[set[str], bool]:
        named, rest = set(), False
        for method in self._methods():
            for p in list(inspect.signature(method).parameters.values())[1:]:
                if p.kind is p.VAR_KEYWORD:
                    rest = True
                else:
                    named.add(p.name)
        return named, rest

    def _options_of(self, method: Any, asked: dict[str, Any]) -> dict[str, Any]:
        parameters = list(inspect.signature(method).parameters.values())[1:]
        own = {p.name for p in parameters if p.kind is not p.VAR_KEYWORD}
        found = {k: v for k, v in asked.items() if k in own}
        if any(p.kind is p.VAR_KEYWORD for p in parameters):
            named = self._taken()[0]
            found |= {k: v for k, v in asked.items() if k not in named}
        return found

    def _results(self, items: Iterable[Any], size: int, asked: dict[str, Any]) -> Iterator[Any]:
        """Results in the order of items; rows of several items may share a batch."""
        prepare, run, finish = (self._options_of(m, asked) for m in self._methods())
        waiting: list[list[Row]] = []  # of items whose results are not out
        queue: list[Row] = []

        def flush() -> None:
            with votive.no_grad():
                self._ran(queue, run)
            queue.clear()

        for item in items:
            rows = list(self.prepare(item, **prepare))
            waiting.append(rows)
            for row in rows:
                queue.append(row)
                if len(queue) == size:
                    flush()
            while waiting and all(row.found for row in waiting[0]):
                yield self.finish(waiting.pop(0), **finish)
        if queue:
            flush()
        for rows in waiting:
            yield self.finish(rows, **finish)

    def _ran(self, rows: list[Row], options: dict[str, Any]) -> None:
        if self.apart and len({tuple(tuple(v.shape) for v in row.tensors.values()) for row in rows}) > 1:
            for row in rows:
                self._ran([row], options)
            return
        batch = self._batch(rows)
        moved = {
            name: value.to(device=self.device, dtype=self.dtype if value.is_floating_point() else value.dtype)
            for name, value in batch.items()
        }
        found = self.run(moved, **options)
        width = batch["input_ids"].shape[1] if "input_ids" in batch else 0
        for i, row in enumerate(rows):
            row.width = width
            row.found = {
                name: value[i : i + 1].cpu() if isinstance(value, Tensor) else value[i]
                for name, value in found.items()
                if isinstance(value, list) or (isinstance(value, Tensor) and value.dim())
            }

    def _batch(self, rows: list[Row]) -> dict[str, Tensor]:
        """Rows as one batch, padded on the tokenizer's side."""
        names = rows[0].tensors.keys()
        for row in rows:
            if row.tensors.keys() != names:
                raise ValueError(
                    f"{type(self).__name__}: inputs of different kinds are no batch: one has {sorted(names)}, another "
                    f"{sorted(row.tensors)}; use batch_size=1."
                )
        return {name: self._stacked(name, [row.tensors[name] for row in rows]) for name in names}

    def _stacked(self, name: str, values: list[Tensor]) -> Tensor:
        if len({tuple(v.shape) for v in values}) == 1:
            return votive.cat(values) if len(values) > 1 else values[0]
        if len({tuple(v.shape[2:]) for v in values}) > 1 or values[0].dim() < 2:
            shapes = sorted({tuple(v.shape) for v in values})
            raise ValueError(f"{type(self).__name__}: {name} of the shapes {shapes} is no batch; use batch_size=1.")
        fill = _PADDING.get(name, _ELSE)
        side = "right"
        if self.tokenizer is not None:
            side = getattr(self.tokenizer, "padding_side", side)
            if name == "input_ids":
                if self.tokenizer.pad_token_id is None:
                    raise ValueError(
                        f"{type(self).__name__}: texts of several lengths need a padding token, and the tokenizer has "
                        "none; set pipe.tokenizer.pad_token = pipe.tokenizer.eos_token, or use batch_size=1."
                    )
                fill = self.tokenizer.pad_token_id
        longest = max(v.shape[1] for v in values)
        padded = []
        for v in values:
            missing = votive.full((v.shape[0], longest - v.shape[1], *v.shape[2:]), fill, dtype=v.dtype)
            padded.append(votive.cat([missing, v] if side == "left" else [v, missing], 1))
        return votive.cat(padded)

    # --- for tasks -------------------------------------------------------------------------------

    def accepted(self, tensors: Mapping[str, Any]) -> dict[str, Any]:
        """What of a batch the model's forward takes; models that keep states are told not to."""
        parameters = inspect.signature(self.model.forward).parameters
        any_name = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        found = {k: v for k, v in tensors.items() if k in parameters or (any_name and k != "special_tokens_mask")}
        return {**found, **({"use_cache": False} if "use_cache" in parameters else {})}

    def encoded(self, text: Any, pair: Any = None, **options: Any) -> dict[str, Any]:
        """A text as tensors of a batch of one, cut where the model's files say how long it may be."""
        return dict(self.tokenizer(text, pair, return_tensors="vt", **options).items())

    def generated(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Settings of a generation with the task's own where nobody says anything."""
        said = _said(self.model, settings)
        length = "max_new_tokens" in said or "max_length" in said
        added = {k: v for k, v in self.generation.items() if k not in said and not (k == "max_new_tokens" and length)}
        if not {**said, **added}.get("do_sample"):
            added.pop("temperature", None)
        pad = getattr(self.tokenizer, "pad_token_id", None)
        if pad is not None and "pad_token_id" not in said:
            added["pad_token_id"] = pad
        config = settings.get("generation_config")
        if config is not None:
            return {**settings, "generation_config": config.updated(**added)} if added else settings
        return {**settings, **added}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.model).__name__}, device={str(self.device)!r})"


def _streams(inputs: Any) -> bool:
    """Whether inputs come one after the other: of a generator, an iterator or a dataset."""
    if isinstance(inputs, Iterator) and not hasattr(inputs, "read"):
        return True
    # Arrays and tensors are inputs, as are what Python brings with it: texts, dicts, bytes.
    plain = type(inputs).__module__ == "builtins" or isinstance(inputs, list | tuple | Mapping)
    if plain or hasattr(inputs, "dtype") or hasattr(inputs, "read"):
        return False
    return hasattr(inputs, "__iter__") or (hasattr(inputs, "__getitem__") and hasattr(inputs, "__len__"))


def _items(inputs: Any) -> Iterator[Any]:
    """One after the other; a dataset without an iterator is asked by its numbers, as often as it is long."""
    return iter(inputs) if hasattr(inputs, "__iter__") else (inputs[i] for i in range(len(inputs)))


def _said(model: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings that a caller or a model's files set."""
    found: dict[str, Any] = {}
    for config in (getattr(model, "generation_config", None), settings.get("generation_config")):
        values = config if isinstance(config, Mapping) else getattr(config, "__dict__", {})
        found |= {k: v for k, v in values.items() if v is not None}
    return {**found, **{k: v for k, v in settings.items() if k != "generation_config"}}


def _device(device: int | str | votive.device) -> votive.device:
    if isinstance(device, int):
        return votive.device("cpu") if device < 0 else votive.device(f"cuda:{device}")
    return votive.device(device)


def _positive(name: str, batch_size: int) -> int:
    if batch_size < 1:
        raise ValueError(f"{name}: batch_size must be 1 or more, got {batch_size}.")
    return batch_size
