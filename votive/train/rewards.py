"""Functions that tell how good answers are: found by name, called with what they take, checked. Knows no model."""

from __future__ import annotations

import importlib.util
import inspect
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..tensor import Tensor

Reward = Callable[..., Any]
Rewards = Reward | str | Sequence[Reward | str]


def read_rewards(given: Rewards) -> list[Reward]:
    """Functions, from themselves or from "file.py:name".

    >>> votive.train.rewards.read_rewards(len)
    [<built-in function len>]
    """
    several = [given] if callable(given) or isinstance(given, str) else list(given)
    if not several:
        raise ValueError("a reward is a function of prompts and completions, or several of them; got none.")
    return [_read(one) for one in several]


def _read(one: Any) -> Reward:
    if callable(one):
        return one
    if not isinstance(one, str):
        raise TypeError(f'a reward is a function, or "file.py:name" of one; got {type(one).__name__}.')
    file, sign, name = one.rpartition(":")
    if not sign or not file or not name:
        raise ValueError(f'a reward is named "file.py:name", got {one!r}.')
    path = Path(os.path.expanduser(file))
    if not path.is_file():
        raise FileNotFoundError(f"{path} is no file; a reward is named file.py:name.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is no Python file; a reward is named file.py:name.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = getattr(module, name, None)
    if not callable(found):
        known = ", ".join(n for n, v in vars(module).items() if inspect.isfunction(v)) or "none"
        raise ValueError(f"{path} has no function {name!r}; it has {known}.")
    return found


def rewarded(
    functions: Sequence[Reward], prompts: Sequence[Any], completions: Sequence[Any], **more: Sequence[Any]
) -> list[float]:
    """The sum of what functions give for each completion.

    Each is called with `prompts`, `completions` and the further columns by name, of those that it takes.

    >>> def short(completions):
    ...     return [1 / len(c) for c in completions]
    >>> votive.train.rewards.rewarded([short], ["a", "a"], ["one", "four"], label=[1, 2])
    [0.3333333333333333, 0.25]
    """
    total = [0.0] * len(completions)
    given = {"prompts": list(prompts), "completions": list(completions), **{n: list(v) for n, v in more.items()}}
    for function in functions:
        for i, value in enumerate(_values(function, given, len(completions))):
            total[i] += value
    return total


def _values(function: Reward, given: Mapping[str, list[Any]], count: int) -> list[float]:
    name = getattr(function, "__name__", type(function).__name__)
    found = function(**_taken(function, given))
    if isinstance(found, Tensor):
        found = found.tolist()
    try:
        values = [float(value) for value in found]
    except (TypeError, ValueError):
        raise TypeError(f"the reward {name} must give a list of numbers, got {found!r:.80}.") from None
    if len(values) != count:
        raise ValueError(f"the reward {name} must give a number for each of {count} completions, got {len(values)}.")
    for i, value in enumerate(values):
        if not math.isfinite(value):
            raise ValueError(f"the reward {name} gave {value} for {given['completions'][i]!r:.80}.")
    return values


def _taken(function: Reward, given: Mapping[str, list[Any]]) -> Mapping[str, list[Any]]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return given
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return given
    return {p.name: given[p.name] for p in parameters if p.name in given}
