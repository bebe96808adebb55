"""The table from ONNX operators to votive's functions, and what a rule sees of its node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from ..core import dtype as dt

Rule = Callable[..., Any]
READ: dict[tuple[str, str], Rule] = {}
_DOMAINS = {"ai.onnx": "", "ai.onnx.ml": "ai.onnx.ml"}
_loaded: list[bool] = []


@dataclass
class Attributes:
    """What a node says beside its inputs. `given` inputs are its own; those behind are for graphs inside of it."""

    op: str
    values: dict[str, Any]
    opset: int
    outputs: int
    wanted: list[bool]
    given: int = 0
    outer: list[str] = field(default_factory=list)

    def __call__(self, name: str, default: Any = None) -> Any:
        return self.values.get(name, default)

    def ints(self, name: str, default: Any = None) -> Any:
        found = self.values.get(name)
        return default if found is None else tuple(int(i) for i in found)


def reads(*names: str, domain: str = "") -> Callable[[Rule], Rule]:
    """Register what ONNX operators mean: rule(attributes, *inputs)."""

    def register(rule: Rule) -> Rule:
        for name in names:
            READ[domain, name] = rule
        return rule

    return register


def find(domain: str, op: str) -> Rule | None:
    """The rule of an operator, or None."""
    if not _loaded:
        for name in ("math", "shapes", "layers", "quantized", "control", "sequences", "signal"):
            import_module(f"{__package__}.read_{name}")
        _loaded.append(True)
    return READ.get((_DOMAINS.get(domain, domain), op))


def whole(t: Any) -> list[int]:
    """The integers of a small tensor."""
    return [int(v) for v in t.reshape(-1).tolist()]


def is_float(t: Any) -> bool:
    return bool(t.dtype.is_floating_point)


HALF = (dt.float16, dt.bfloat16)
