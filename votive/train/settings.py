"""What every kind of training is told: steps, optimizer, schedule, checkpoints, as numbers in one place.

Knows optimizers; knows no model and reads no data.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import votive
from votive import nn

from ..amp import GradScaler
from ..serialization.atomic import replacing

_OPTIMIZERS = {"adamw": "AdamW", "adamw8bit": "AdamW8bit", "lion": "Lion", "lion8bit": "Lion8bit"}
# What may change between two parts of a run: none of it decides the weights.
_HARMLESS = {"log_every", "checkpoint_every", "keep_last"}
_NOTE = "recipe.json"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Numbers that a run is made with, which a file may hold and a resumed run must share.

    >>> votive.train.Recipe.from_dict({"lr": 0.01}).differences(votive.train.Recipe())
    {'lr': (0.01, 0.002)}
    """

    # Settings that are positive whole numbers, where they are given.
    counts: ClassVar[tuple[str, ...]] = ("batch_size", "accumulate", "log_every", "keep_last")
    floating: ClassVar[tuple[str, ...]] = ("amp", "save_dtype")

    held_out: float = 0.05
    batch_size: int = 8
    accumulate: int = 1
    min_lr: float | None = None
    warmup_steps: int | None = None
    clip_grad_norm: float | None = 1.0
    amp: str | None = None
    compile: bool | None = None
    seed: int = 0

    eval_every: int | None = 100
    log_every: int = 10
    checkpoint_every: int | None = 100
    keep_last: int = 2
    save_dtype: str | None = None

    optimizer_name: str = "adamw"
    gradient_checkpointing: bool = False

    def __post_init__(self) -> None:
        name = type(self).__name__
        for setting in self.counts:
            value = getattr(self, setting)
            if type(value) is not int or value < 1:
                raise ValueError(f"{name}: {setting} must be a positive integer, got {value!r}.")
        if not 0 <= self.held_out < 1:
            raise ValueError(f"{name}: held_out is a fraction below 1, got {self.held_out}.")
        for setting in self.floating:
            self._check_floating(setting)
        if self.optimizer_name not in _OPTIMIZERS:
            raise ValueError(f"{name}: optimizer_name is one of {', '.join(_OPTIMIZERS)}, got {self.optimizer_name!r}.")

    def _check_floating(self, setting: str) -> None:
        given = getattr(self, setting)
        if given is None:
            return
        found = getattr(votive, given, None) if isinstance(given, str) else None
        if not isinstance(found, votive.dtype) or not found.is_floating_point:
            raise ValueError(f"{type(self).__name__}: {setting} names a floating-point type, got {given!r}.")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """From the content of a configuration file; an unknown name is an error.

        >>> votive.train.Recipe.from_dict({"hidden_size": 32, "betas": [0.9, 0.99]}).betas
        (0.9, 0.99)
        """
        known = [f.name for f in dataclasses.fields(cls)]
        unknown = sorted(set(values) - set(known))
        if unknown:
            import difflib

            close = difflib.get_close_matches(unknown[0], known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}."
            raise ValueError(f"{cls.__name__}: there is no setting {unknown[0]!r}; {hint}")
        given = dict(values)
        if "betas" in given:
            given["betas"] = tuple(given["betas"])
        for setting in ("lora_targets", "labels"):
            names = given.get(setting)
            if names is not None:
                given[setting] = tuple(names.split(",") if isinstance(names, str) else names)
        return cls(**given)

    def to_dict(self) -> dict[str, Any]:
        """What JSON holds; `from_dict` reads it back.

        >>> votive.train.Recipe.from_dict(votive.train.Recipe().to_dict()) == votive.train.Recipe()
        True
        """
        return {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self)}

    def replace(self, **changes: Any) -> Self:
        """The recipe with some settings changed.

        >>> votive.train.Recipe().replace(lr=0.01).lr
        0.01
        """
        return dataclasses.replace(self, **changes)

    def differences(self, other: Settings) -> dict[str, tuple[Any, Any]]:
        """Settings in which two recipes would not make the same model.

        >>> votive.train.Recipe().differences(votive.train.Recipe(lr=0.01, log_every=1))
        {'lr': (0.002, 0.01)}
        """
        mine, theirs = self.to_dict(), other.to_dict()
        return {
            name: (mine[name], theirs.get(name))
            for name in mine
            if name not in _HARMLESS and mine[name] != theirs.get(name)
        }

    @property
    def amp_dtype(self) -> votive.dtype | None:
        """The type of mixed precision; None for none.

        >>> votive.train.Recipe(amp="bfloat16").amp_dtype
        votive.bfloat16
        """
        return None if self.amp is None else getattr(votive, self.amp)

    def scaler(self, device: str) -> GradScaler | None:
        """What keeps small gradients of float16 from vanishing; None for other types.

        >>> votive.train.Recipe(amp="bfloat16").scaler("cpu") is None
        True
        """
        return GradScaler(device) if self.amp_dtype is votive.float16 else None

    def warmup_of(self, steps: int) -> int:
        """How many of all steps the learning rate rises: a tenth unless told.

        >>> votive.train.Recipe().warmup_of(50)
        5
        """
        if self.warmup_steps is not None:
            return min(self.warmup_steps, steps)
        return min(steps // 10, 1000)

    def optimizer_for(
        self, model: nn.Module, lr: float, steps: int, *, betas: tuple[float, float], weight_decay: float
    ) -> tuple[Any, Any]:
        """AdamW (or another) that shrinks matrices only, and its schedule: a rise, then a cosine.

        >>> net = votive.nn.Linear(2, 2)
        >>> optimizer, _ = votive.train.Recipe().optimizer_for(net, 0.1, 9, betas=(0.9, 0.99), weight_decay=0.5)
        >>> [group["weight_decay"] for group in optimizer.param_groups]
        [0.5, 0.0]
        """
        trained = [p for p in model.parameters() if p.requires_grad]
        matrices = [p for p in trained if p.dim() >= 2]
        others = [p for p in trained if p.dim() < 2]
        groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
        kind = getattr(votive.optim, _OPTIMIZERS[self.optimizer_name])
        optimizer = kind([g for g in groups if g["params"]], lr=lr, betas=betas)
        lowest = lr / 10 if self.min_lr is None else self.min_lr
        schedule = votive.optim.lr_scheduler.CosineWithWarmup(optimizer, self.warmup_of(steps), steps, min_lr=lowest)
        return optimizer, schedule


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


def claim(folder: Path, recipe: Settings, resume: bool, facts: Mapping[str, Any] | None = None) -> None:
    """Make the folder of checkpoints this run's own, or see that it is the run that is resumed.

    `facts` are what else must be as it was, such as the data.

    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> votive.train.settings.claim(folder, votive.train.Recipe(), False)
    >>> (folder / "recipe.json").is_file()
    True
    """
    note = folder / _NOTE
    started = any(folder.glob("step-*.safetensors")) or any(folder.glob("step-*/index.json"))
    if started and not resume:
        raise FileExistsError(f"{folder} holds checkpoints of another run; resume it, or use another folder.")
    if resume and not started:
        raise FileNotFoundError(f"{folder} holds no checkpoint to resume from.")
    facts = dict(facts or {})
    if started and note.is_file():
        before = json.loads(note.read_bytes())
        for name, value in facts.items():
            if before.pop(name, None) != value:
                raise ValueError(f"{folder} was made with other {name}; a run can only be resumed with its own.")
        changed = type(recipe).from_dict(before).differences(recipe)
        if changed:
            differences = "; ".join(f"{name} was {a!r}, now {b!r}" for name, (a, b) in changed.items())
            raise ValueError(f"a run can only be resumed with its own recipe: {differences}.")
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(note) as f:
        f.write((json.dumps({**recipe.to_dict(), **facts}, indent=2) + "\n").encode())
