"""What a model is made from: the numbers of a Hugging Face config.json. Knows no tensors."""

from __future__ import annotations

import copy
import json
import math
import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self

from ..core.dtype import dtype as DType
from ..nn.layers.rope_scaling import check_options
from ..serialization.atomic import replacing

StrPath = str | os.PathLike[str]
NAME = "config.json"
# A configuration is a page of numbers; more is not one.
_LARGEST = 16 << 20
# What a layer of a decoder may be called, in most families.
LAYER_TYPES = ("full_attention", "sliding_attention")


@dataclass(kw_only=True)
class Config:
    """The fields every model has; families add theirs. Unknown keys are kept in `extra`.

    >>> config = votive.models.LlamaConfig.from_dict({"hidden_size": 64, "made_by": "me"})
    >>> config.hidden_size, config.made_by, config.to_dict()["made_by"]
    (64, 'me', 'me')
    """

    model_type: ClassVar[str] = ""
    # Families whose files mean the same by every key.
    same_network: ClassVar[tuple[str, ...]] = ()
    # What a head adds, which options may change though it is no field.
    head_fields: ClassVar[tuple[str, ...]] = ()
    # What `layer_types` may name.
    layer_kinds: ClassVar[tuple[str, ...]] = LAYER_TYPES

    architectures: list[str] | None = None
    dtype: str | None = None
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None
    pad_token_id: int | None = None
    tie_word_embeddings: bool = False
    initializer_range: float = 0.02
    extra: dict[str, Any] = field(default_factory=dict, repr=False)

    def __getattr__(self, name: str) -> Any:
        # Only asked for what is no field.
        if not name.startswith("__") and name in self.__dict__.get("extra", {}):
            return self.extra[name]
        raise AttributeError(f"{type(self).__name__} has no field {name!r}.")

    def __setattr__(self, name: str, value: object) -> None:
        # The one gate for all values: constructors, files and later changes.
        kind = _annotations(type(self)).get(name)
        if kind is not None:
            value = _checked(f"{type(self).__name__}: {name}", value, kind)
            if name == "layer_types" and isinstance(value, list):
                _check_kinds(f"{type(self).__name__}: layer_types", value, self.layer_kinds)
        elif "extra" in self.__dict__ and not hasattr(type(self), name):
            self.extra[name] = value
            return
        object.__setattr__(self, name, value)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """From the content of a config.json: a key that is absent has its default, null is None.

        >>> votive.models.MistralConfig.from_dict({}).sliding_window
        4096
        >>> votive.models.MistralConfig.from_dict({"sliding_window": None}).sliding_window
        """
        known = _annotations(cls)
        given = cls.adapt(dict(values))
        kept = {name: given.pop(name) for name in list(given) if name in known}
        model_type = given.pop("model_type", None)
        if model_type and cls.model_type and model_type not in (cls.model_type, *cls.same_network):
            raise ValueError(
                f"{cls.__name__}: this is the configuration of a {model_type!r}, not of a "
                f"{cls.model_type!r}; AutoModel and AutoConfig choose the class that fits."
            )
        try:
            return cls(**kept, extra=given)
        except TypeError as e:
            raise ValueError(f"{cls.__name__}: {e}.") from None

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Other spellings of the same facts, from older and newer files."""
        old = values.pop("torch_dtype", None)
        if values.get("dtype") is None and old is not None:
            values["dtype"] = old
        return values

    def to_dict(self) -> dict[str, Any]:
        """What config.json holds, None as null; `from_dict` reads it back."""
        own = {name: copy.deepcopy(getattr(self, name)) for name in _annotations(type(self))}
        return {"model_type": self.model_type, **copy.deepcopy(self.extra), **own}

    @classmethod
    def from_pretrained(cls, folder: StrPath, **changes: Any) -> Self:
        """Read config.json from a folder, or the file itself; `changes` replace fields."""
        from .arguments import changed

        config = cls.from_dict(read_json(_file(folder)))
        return changed(f"{cls.__name__}.from_pretrained", config, changes)

    def save_pretrained(self, folder: StrPath) -> None:
        """Write config.json into a folder."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        with replacing(path / NAME) as f:
            f.write((json.dumps(_tagged(self.to_dict()), indent=2, sort_keys=True) + "\n").encode())


@dataclass(kw_only=True)
class LabeledConfig(Config):
    """With names for classes: `id2label` and `num_labels` tell the same, `LABEL_0` by default.

    >>> votive.models.BertConfig(num_labels=3).id2label
    {0: 'LABEL_0', 1: 'LABEL_1', 2: 'LABEL_2'}
    """

    id2label: dict[Any, str] | None = None
    num_labels: int | None = None
    problem_type: str | None = None

    def __post_init__(self) -> None:
        # JSON has words for keys only.
        named = {int(i): name for i, name in (self.id2label or {}).items()}
        count = self.num_labels
        if count is None:
            count = len(named) or 2
        if named and count != len(named):
            warnings.warn(
                f"{type(self).__name__}: num_labels={count} replaces the {len(named)} classes that id2label names.",
                stacklevel=3,
            )
        if count != len(named):
            named = {i: f"LABEL_{i}" for i in range(count)}
        self.num_labels, self.id2label = count, named

    def __setattr__(self, name: str, value: object) -> None:
        # Not in the constructor, which compares the two itself.
        renamed = name == "num_labels" and self.__dict__.get(name) is not None
        super().__setattr__(name, value)
        count = self.num_labels if renamed else None
        if count is not None and len(self.id2label or ()) != count:
            self.id2label = {i: f"LABEL_{i}" for i in range(count)}

    @property
    def label_count(self) -> int:
        """How many classes there are."""
        assert self.num_labels is not None, "known once the labels have names"
        return self.num_labels


_ANNOTATIONS: dict[type[Config], dict[str, str]] = {}


def _annotations(cls: type[Config]) -> dict[str, str]:
    """The fields of a configuration and their types, as they are written."""
    if cls not in _ANNOTATIONS:
        _ANNOTATIONS[cls] = {
            f.name: f.type if isinstance(f.type, str) else getattr(f.type, "__name__", str(f.type))
            for f in fields(cls)
            if f.name != "extra"
        }
    return _ANNOTATIONS[cls]


# The most that a field may say, by its name: of things that are made one by one, of the width of
# matrices, and of whatever else is counted. Far beyond any model, and below what overflows.
_MOST = (
    (re.compile(r".*(layers|layer|heads|head|experts|experts_per_tok|experts_per_token)"), 1 << 16),
    (
        re.compile(
            r".*(hidden|intermediate|head|embedding|projection)_(size|dim)|d_.*|.*ffn_dim"
            r"|dim|n_embd|n_inner|.*patch_size|.*image_size"
        ),
        1 << 24,
    ),
    (re.compile(r"(num|n)_.*|.*_(size|dim|length|positions|window|embeddings)"), (1 << 31) - 1),
)
# Of these a model may have none.
_MAYBE_NONE = re.compile(r".*layers?|.*experts.*|num_labels|type_vocab_size|shared_intermediate_size")


def _checked(what: str, value: object, expected: str) -> Any:
    """A value that fits its field's annotation, such as `int | None` or `list[str]`."""
    kinds = {kind.partition("[")[0].strip() for kind in re.sub(r"\[.*?\]", "", expected).split("|")}
    if "Any" in kinds or (value is None and "None" in kinds):
        return value
    if isinstance(value, Integral) and not isinstance(value, bool):
        value = int(value)
        kinds |= {"int"} if "float" in kinds else set()
    elif isinstance(value, Real) and not isinstance(value, bool):
        value = float(value)
        if "float" not in kinds and value.is_integer():
            value = int(value)
    elif isinstance(value, tuple) and ("tuple" not in kinds or "list" in kinds):
        value = list(value)
    elif what.endswith(": dtype") and isinstance(value, DType):
        value = value.name
    if type(value).__name__ not in kinds:
        raise ValueError(f"{what} must be {expected}, got {value!r}.")
    if "int" in kinds:
        _check_size(what, value)
    _check_meaning(what, value)
    return value


def _check_size(what: str, value: object) -> None:
    """Raise for sizes that no model has, rather than when memory is asked for."""
    name = what.rpartition(" ")[2]
    most = next((most for names, most in _MOST if names.fullmatch(name)), None)
    if most is None or not isinstance(value, int):
        return
    least = -1 if name == "max_relative_positions" else 0 if _MAYBE_NONE.fullmatch(name) else 1
    if value < least:
        raise ValueError(f"{what} must be {least} or more, got {value}.")
    if value > most:
        raise ValueError(f"{what}={value:,} is more than any model has; {most:,} is the most.")


def _check_kinds(what: str, value: list[Any], known: tuple[str, ...]) -> None:
    unknown = [kind for kind in value if kind not in known]
    if unknown:
        raise ValueError(f"{what} has {unknown[0]!r}; layers here are {' or '.join(map(repr, known))}.")


def _check_meaning(what: str, value: Any) -> None:
    """Raise for values that have the right type and that no model can be run with."""
    name = what.rpartition(" ")[2]
    if name == "rope_scaling":
        check_options(what, value)
    elif name in ("rope_theta", "rope_local_base_freq"):
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"{what} must be a finite number above 0, got {value}.")
    elif name.endswith(("_eps", "_epsilon")) and not (value >= 0 and math.isfinite(value)):
        raise ValueError(f"{what} must be a finite number of 0 or more, got {value}.")


def _file(folder: StrPath) -> Path:
    path = Path(folder)
    return path / NAME if path.is_dir() else path


def read_json(path: Path) -> dict[str, Any]:
    """The object in a small JSON file; what is wrong with it is said with its name."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist.")
    if path.stat().st_size > _LARGEST:
        raise ValueError(f"{path} has {path.stat().st_size:,} bytes; that is no configuration.")
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as e:
        raise ValueError(f"{path} is not valid JSON: {e}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path} holds a {type(found).__name__}, not an object.")
    return _untagged(found)


# What JSON has no numbers for, as transformers writes it: {"__float__": "Infinity"}.
_TAG = "__float__"
_TAGGED = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}


def _tagged(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _tagged(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_tagged(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {_TAG: json.dumps(value)}
    return value


def _untagged(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {_TAG} and value[_TAG] in _TAGGED:
            return _TAGGED[value[_TAG]]
        return {k: _untagged(v) for k, v in value.items()}
    return [_untagged(v) for v in value] if isinstance(value, list) else value


def rope_of(values: dict[str, Any], theta: float) -> tuple[float, dict[str, Any] | None]:
    """The base and the stretching of rotary embeddings, however the file spells them.

    Files since 2025 say `rope_parameters`, earlier ones `rope_theta` and `rope_scaling`.

    >>> from votive.models.config import rope_of
    >>> rope_of({"rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}}, 1e4)
    (500000.0, None)
    >>> rope_of({"rope_theta": 1e6, "rope_scaling": {"type": "linear", "factor": 2.0}}, 1e4)
    (1000000.0, {'rope_type': 'linear', 'factor': 2.0})
    """
    parameters = values.get("rope_parameters") or values.get("rope_scaling") or {}
    if not isinstance(parameters, Mapping):
        raise ValueError(f"rope_scaling must be an object such as {{'rope_type': ...}}, got {parameters!r}.")
    scaling = dict(parameters)
    base = scaling.pop("rope_theta", values.get("rope_theta", theta))
    if not isinstance(base, int | float):
        raise ValueError(f"rope_theta must be a number, got {base!r}.")
    kind = scaling.pop("rope_type", None) or scaling.pop("type", None) or "default"
    scaling.pop("type", None)
    scaling.pop("partial_rotary_factor", None)  # says how many features turn, not how
    if kind in ("default", "mrope"):
        if kind == "default" and "factor" in scaling:
            warnings.warn(
                f"rope_scaling has factor={scaling['factor']!r} and no rope_type, so nothing is "
                "stretched; say 'rope_type': 'linear' or another.",
                stacklevel=4,
            )
        return float(base), None
    return float(base), {"rope_type": kind, **scaling}
