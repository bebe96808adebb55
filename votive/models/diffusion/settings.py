"""What diffusion models, schedulers and pipelines are made from: the keys of their JSON files.

Knows names, values and defaults; knows no tensors and no model.
"""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from ...core.similar import similar
from ...serialization.atomic import replacing
from ..config import StrPath, read_json

# Keys of ours in files, which are no arguments of a constructor.
CLASS, VERSION, DEFAULTED = "_class_name", "_diffusers_version", "_use_default_values"


class Settings(dict[str, Any]):
    """A frozen dict whose keys are attributes as well.

    >>> settings = votive.models.diffusion.Settings(sample_size=32)
    >>> settings.sample_size, settings["sample_size"]
    (32, 32)
    """

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"the configuration has no key {name!r}; it has {', '.join(self)}.")

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            "a configuration does not change: make another with from_config(model.config, key=value)"
            + (f" (asked for {args or kwargs})" if args or kwargs else "")
            + "."
        )

    __setitem__ = __delitem__ = __setattr__ = __delattr__ = _refuse
    update = setdefault = pop = popitem = clear = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return Settings, (dict(self),)

    def __copy__(self) -> Settings:
        return Settings(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Settings:
        return Settings(json.loads(json.dumps(dict(self))))


class Configured:
    """What is built from `defaults`, a table of keys, and remembers with which values.

    `choices` are the values that a key may have; a class says in `refused` which keys of its reference it does not
    know: the values with which they ask for nothing, and what to do instead.

    >>> scheduler = votive.models.diffusion.DDIMScheduler(num_train_timesteps=100)
    >>> scheduler.config.num_train_timesteps, scheduler.config.beta_schedule
    (100, 'linear')
    """

    defaults: ClassVar[dict[str, Any]] = {}
    choices: ClassVar[dict[str, tuple[Any, ...]]] = {}
    refused: ClassVar[dict[str, tuple[tuple[Any, ...], str]]] = {}
    config_name: ClassVar[str] = "config.json"
    __signature__: ClassVar[inspect.Signature]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD
        cls.__signature__ = inspect.Signature([inspect.Parameter(k, kinds, default=v) for k, v in cls.defaults.items()])

    def configure(self, args: tuple[Any, ...], values: dict[str, Any]) -> None:
        """Take the arguments of a constructor."""
        name = type(self).__name__
        if len(args) > len(self.defaults):
            raise TypeError(f"{name} takes {len(self.defaults)} arguments, got {len(args)}.")
        given = dict(zip(self.defaults, args, strict=False))
        twice = sorted(given.keys() & values.keys())
        if twice:
            raise TypeError(f"{name}: {twice[0]} was given twice.")
        given.update(values)
        for key in given:
            if key not in self.defaults:
                near = similar(key, list(self.defaults), 1)
                hint = f"; did you mean {near[0]!r}?" if near else "."
                raise TypeError(f"{name}: unexpected argument {key!r}{hint}")
        found = {**self.defaults, **given}
        defaulted = sorted(self.defaults.keys() - given.keys())
        self._check(found)
        object.__setattr__(self, "_config", Settings({**found, **({DEFAULTED: defaulted} if defaulted else {})}))

    def _check(self, found: Mapping[str, Any]) -> None:
        name = type(self).__name__
        for key, (harmless, advice) in self.refused.items():
            value = found.get(key, harmless[0])
            if not any(value is h or value == h for h in harmless):
                raise ValueError(f"{name}: {key}={value!r} is not supported; {advice}.")
        for key, known in self.choices.items():
            if found[key] not in known:
                raise ValueError(f"{name}: {key}={found[key]!r} is not known; it may be {_either(known)}.")

    @property
    def config(self) -> Settings:
        """The values that this was made with, by key and as attributes."""
        found: Settings = self.__dict__["_config"]
        return found

    def change_config(self, **values: Any) -> None:
        """Put other values into the configuration, as loading a file or a pipeline's rules may."""
        known = [k for k in self.config.get(DEFAULTED, ()) if k not in values]
        rest = {k: v for k, v in self.config.items() if k != DEFAULTED}
        made = Settings({**rest, **values, **({DEFAULTED: known} if known else {})})
        object.__setattr__(self, "_config", made)

    @classmethod
    def from_config(cls, config: Mapping[str, Any], **changes: Any) -> Self:
        """A new one from another's configuration, of the same kind or of one that shares keys.

        Keys that the other had by default are left to the defaults of this class. Keys that this class does not have
        are kept in the configuration and mean nothing; a warning names them unless their own class is another.

        >>> from votive.models.diffusion import DDIMScheduler, DPMSolverMultistepScheduler
        >>> DPMSolverMultistepScheduler.from_config(DDIMScheduler(beta_end=0.01).config).config.beta_end
        0.01
        """
        if not isinstance(config, Mapping):
            raise TypeError(f"{cls.__name__}.from_config: give a configuration, got {type(config).__name__}.")
        values = {k: v for k, v in config.items() if k != DEFAULTED and k not in config.get(DEFAULTED, ())}
        unknown = [k for k in changes if k not in cls.defaults]
        if unknown:
            near = similar(unknown[0], list(cls.defaults), 1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise TypeError(f"{cls.__name__}: unexpected argument {unknown[0]!r}{hint}")
        own = {k: v for k, v in {**values, **changes}.items() if k in cls.defaults}
        hidden = {k: v for k, v in values.items() if k not in cls.defaults}
        strange = [k for k in hidden if not k.startswith("_") and k not in cls.kindred()]
        if strange and config.get(CLASS, cls.__name__) == cls.__name__:
            warnings.warn(
                f"{cls.__name__}: the configuration has {', '.join(map(repr, strange))}, which this class does not "
                "know and which change nothing here; check them.",
                stacklevel=3,
            )
        made = cls(**own)
        if hidden:
            made.change_config(**{k: v for k, v in hidden.items() if k != CLASS})
        return made

    @classmethod
    def kindred(cls) -> set[str]:
        """Keys of classes whose configurations this one may be made from."""
        return set()

    @classmethod
    def load_config(cls, folder: StrPath, *, subfolder: str | None = None) -> dict[str, Any]:
        """The content of the class' JSON file in a folder, or of the file itself."""
        path = Path(folder).expanduser()
        path = path / subfolder if subfolder else path
        return read_json(path / cls.config_name if path.is_dir() else path)

    def config_dict(self) -> dict[str, Any]:
        """What the JSON file holds."""
        found = {k: _plain(v) for k, v in self.config.items() if k != DEFAULTED}
        return {**found, CLASS: type(self).__name__}

    def save_config(self, folder: StrPath) -> None:
        """Write the JSON file into a folder."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        with replacing(path / self.config_name) as f:
            f.write((json.dumps(self.config_dict(), indent=2, sort_keys=True) + "\n").encode())


def _either(known: tuple[Any, ...]) -> str:
    return " or ".join(map(repr, known))


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value


def per_block(name: str, key: str, value: Any, count: int) -> list[Any]:
    """A value for each block, where one may stand for all.

    >>> from votive.models.diffusion.settings import per_block
    >>> per_block("UNet2DModel", "layers_per_block", 2, 3)
    [2, 2, 2]
    """
    found = list(value) if isinstance(value, list | tuple) else [value] * count
    if len(found) != count:
        raise ValueError(f"{name}: {key} has {len(found)} values for {count} blocks: {value!r}.")
    return found


def pairs(settings: Settings) -> Iterator[tuple[str, Any]]:
    """The keys that a constructor takes, with their values."""
    return ((k, v) for k, v in settings.items() if not k.startswith("_"))
