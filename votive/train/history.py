"""What a run has measured, step by step: losses, rates, evaluations; as JSON and as a curve.

Knows numbers; knows no model.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from ..serialization.atomic import replacing
from ..serialization.container import FileFormatError
from . import png, svg
from .chart import Curve, build, smooth, sparkline

_COLUMNS = ("step", "epoch", "loss", "lr", "grad_norm")


class History:
    """Columns of numbers, one row per optimizer step, and a list of evaluations.

    >>> history = votive.train.History()
    >>> history.add(step=1, epoch=0, loss=2.0, lr=0.1)
    >>> history.add(step=2, epoch=0, loss=1.0, lr=0.1)
    >>> history["loss"], history.sparkline()
    ([2.0, 1.0], '█▁')
    """

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        self.evals: list[dict[str, Any]] = []

    def add(
        self, *, step: int, epoch: int, loss: float, lr: float, grad_norm: float | None = None, **values: float
    ) -> None:
        """Append a step; further values get columns of their own.

        >>> votive.train.History().add(step=1, epoch=0, loss=0.5, lr=0.1, accuracy=0.9)
        """
        n = len(self)
        row = {"step": step, "epoch": epoch, "loss": loss, "lr": lr, "grad_norm": grad_norm}
        for name, value in {**row, **values}.items():
            # A value that turns up late is missing in the rows before it.
            self.columns.setdefault(name, [None] * n).append(value)
        for column in self.columns.values():
            column.extend([None] * (n + 1 - len(column)))

    def add_eval(self, step: int, values: dict[str, float]) -> None:
        """Append the result of an evaluation.

        >>> votive.train.History().add_eval(10, {"loss": 0.5})
        """
        self.evals.append({"step": step, **values})

    def beside(self) -> dict[str, float]:
        """What the last step recorded beside its loss.

        >>> history = votive.train.History()
        >>> history.add(step=1, epoch=0, loss=0.5, lr=0.1, reward=0.9)
        >>> history.beside()
        {'reward': 0.9}
        """
        own = {name: column[-1] for name, column in self.columns.items() if name not in _COLUMNS and column}
        return {name: value for name, value in own.items() if value is not None}

    def __len__(self) -> int:
        return len(self.columns["step"])

    def __getitem__(self, name: str) -> list[Any]:
        return self.columns[name]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, History):
            return NotImplemented
        return self.columns == other.columns and self.evals == other.evals

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        last = f", loss={self['loss'][-1]:.6g}" if len(self) else ""
        return f"History(steps={len(self)}{last}, evals={len(self.evals)})"

    # --- stored -------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Columns as arrays, for checkpoints.

        >>> sorted(votive.train.History().state_dict())
        ['columns', 'evals']
        """
        packed = {name: _packed(column) for name, column in self.columns.items()}
        return {"columns": packed, "evals": [dict(e) for e in self.evals]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Become what `state_dict` described.

        >>> history = votive.train.History()
        >>> history.load_state_dict(history.state_dict())
        """
        self.columns = {
            name: c.tolist() if isinstance(c, np.ndarray) else list(c) for name, c in state_dict["columns"].items()
        }
        self.evals = [dict(e) for e in state_dict["evals"]]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write JSON; numbers that are not finite are written as text.

        >>> import tempfile
        >>> path = tempfile.mkdtemp() + "/history.json"
        >>> votive.train.History().save(path)
        >>> len(votive.train.History.load(path))
        0
        """
        text = json.dumps(_tell({"columns": self.columns, "evals": self.evals}), indent=None)
        with replacing(path) as f:
            f.write(text.encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> History:
        """Read what `save` wrote."""
        out = cls()
        try:
            state = _hear(json.loads(Path(path).read_bytes()))
            out.load_state_dict(state)
            lengths = {len(column) for column in state["columns"].values()}
            if len(lengths) != 1 or not set(_COLUMNS) <= set(out.columns):
                raise ValueError("its columns are not those of a history")
        # What may be wrong with JSON: its bytes, its syntax, its depth, what it holds.
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
            raise FileFormatError(f"{path}: this is no history of a run ({e}).") from None
        return out

    # --- shown --------------------------------------------------------------------------------

    def sparkline(self, name: str = "loss", width: int = 40) -> str:
        """A column in one line of text.

        >>> votive.train.History().sparkline()
        ''
        """
        return sparkline([v for v in self.columns[name] if v is not None], width)

    def plot(
        self, path: str | os.PathLike[str], names: tuple[str, ...] = ("loss",), *, title: str = "", log: bool = False
    ) -> None:
        """Draw columns and evaluations of the same name into an SVG or PNG file.

        >>> import tempfile
        >>> history = votive.train.History()
        >>> for step in range(1, 50):
        ...     history.add(step=step, epoch=0, loss=1 / step, lr=0.1)
        >>> history.plot(tempfile.mkdtemp() + "/curve.svg")
        """
        path = Path(path)
        chart = build([c for name in names for c in self._curves(name)], title=title, log=log)
        if path.suffix.lower() == ".png":
            picture = png.draw(chart)
        elif path.suffix.lower() == ".svg":
            picture = svg.draw(chart).encode()
        else:
            raise ValueError(f"plot: the name must end in .svg or .png, got {path.name!r}.")
        with replacing(path) as f:
            f.write(picture)

    def _curves(self, name: str) -> list[Curve]:
        rows = [(s, v) for s, v in zip(self["step"], self.columns.get(name, [])) if v is not None]
        steps, values = [s for s, _ in rows], [v for _, v in rows]
        curves = [Curve(name, steps, values)]
        if len(values) >= 50:
            # Twenty averages along the curve show its course through the noise of batches.
            curves = [Curve(name, steps, values, faint=True), Curve(name, steps, smooth(values, len(values) // 20))]
        seen = [(e["step"], e[name]) for e in self.evals if name in e]
        if seen:
            curves.append(Curve(f"eval {name}", [s for s, _ in seen], [v for _, v in seen], marked=True))
        return curves


def _packed(column: list[Any]) -> Any:
    if any(v is None for v in column):
        return list(column)
    kind = np.int64 if all(type(v) is int for v in column) else np.float64
    return np.array(column, kind)


def _tell(value: object) -> Any:
    """JSON has no NaN and no infinity."""
    if isinstance(value, dict):
        return {k: _tell(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_tell(v) for v in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _hear(value: object) -> Any:
    if isinstance(value, dict):
        return {k: _hear(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_hear(v) for v in value]
    return float(value) if value in ("nan", "inf", "-inf") else value
