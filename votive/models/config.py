"""What a model is made from: the numbers of a Hugging Face config.json. Knows no tensors."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Self

from ..serialization.atomic import replacing

NAME = "config.json"
# A configuration is a page of numbers; more is not one.
_LARGEST = 16 << 20


@dataclass(kw_only=True)
class Config:
    """The fields every model has; families add theirs. Unknown keys are kept in `extra`.

    >>> config = votive.models.LlamaConfig.from_dict({"hidden_size": 64, "made_by": "me"})
    >>> config.hidden_size, config.made_by, config.to_dict()["made_by"]
    (64, 'me', 'me')
    """

    model_type: ClassVar[str] = ""

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

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """From the content of a config.json; a null means the default where None is no value."""
        known = {f.name: f for f in fields(cls) if f.name != "extra"}
        given = cls.adapt(dict(values))
        kept: dict[str, Any] = {}
        for name in list(given):
            if name in known:
                value = given.pop(name)
                f = known[name]
                if value is None and f.default is not MISSING and f.default is not None:
                    continue
                kept[name] = _checked(f"{cls.__name__}: {name}", value, str(f.type))
        given.pop("model_type", None)
        try:
            return cls(**kept, extra=given)
        except TypeError as e:
            raise ValueError(f"{cls.__name__}: {e}.") from None

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Other spellings of the same facts, from older and newer files."""
        if "torch_dtype" in values:
            values.setdefault("dtype", values.pop("torch_dtype"))
        return values

    def to_dict(self) -> dict[str, Any]:
        """What config.json holds; `from_dict` reads it back."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "extra"}
        told = {name: value for name, value in own.items() if value is not None}
        return {"model_type": self.model_type, **self.extra, **told}

    @classmethod
    def from_pretrained(cls, folder: Any) -> Self:
        """Read config.json from a folder, or the file itself."""
        return cls.from_dict(read_json(_file(folder)))

    def save_pretrained(self, folder: Any) -> None:
        """Write config.json into a folder."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        with replacing(path / NAME) as f:
            f.write((json.dumps(self.to_dict(), indent=2, sort_keys=True) + "\n").encode())


_COUNT = re.compile(r"(num|n)_.*|.*_(size|dim|layers|heads|length|positions|window)")


def _checked(what: str, value: Any, told: str) -> Any:
    """A value that fits its field's annotation, such as `int | None` or `list[str]`."""
    kinds = [kind.partition("[")[0].strip() for kind in re.sub(r"\[.*?\]", "", told).split("|")]
    if "Any" in kinds or (value is None and "None" in kinds):
        return value
    kind = type(value).__name__
    if kind == "int" and "int" not in kinds and "float" in kinds:
        return value
    if kind == "float" and "float" not in kinds and "int" in kinds and value.is_integer():
        kind, value = "int", int(value)
    if kind not in kinds:
        raise ValueError(f"{what} must be {told}, got {value!r}.")
    if kind == "int" and value < 0 and _COUNT.fullmatch(what.rpartition(" ")[2]):
        raise ValueError(f"{what} must not be negative, got {value}.")
    return value


def _file(folder: Any) -> Path:
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
    return found


def rope_of(values: dict[str, Any], theta: float) -> tuple[float, dict[str, Any] | None]:
    """The base and the stretching of rotary embeddings, however the file spells them.

    Files since 2025 say `rope_parameters`, earlier ones `rope_theta` and `rope_scaling`.

    >>> from votive.models.config import rope_of
    >>> rope_of({"rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}}, 1e4)
    (500000.0, None)
    >>> rope_of({"rope_theta": 1e6, "rope_scaling": {"type": "linear", "factor": 2.0}}, 1e4)
    (1000000.0, {'rope_type': 'linear', 'factor': 2.0})
    """
    told = values.get("rope_parameters") or values.get("rope_scaling") or {}
    if not isinstance(told, Mapping):
        raise ValueError(
            f"rope_scaling must be an object such as {{'rope_type': ...}}, got {told!r}."
        )
    scaling = dict(told)
    base = scaling.pop("rope_theta", None) or values.get("rope_theta") or theta
    kind = scaling.pop("rope_type", None) or scaling.pop("type", None) or "default"
    scaling.pop("type", None)
    scaling.pop("partial_rotary_factor", None)  # says how many features turn, not how
    if kind in ("default", "mrope"):
        return float(base), None
    return float(base), {"rope_type": kind, **scaling}
