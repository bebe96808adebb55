"""Counting floating-point operations of what a program runs. The names are torch's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from ..dispatch.observe import Call, Observer
from ..ops.operator import Op
from . import flop_formulas

__all__ = ["FlopCounterMode", "register_flop_formula"]
SUFFIXES = ("", "K", "M", "B", "T")


def _name(target: object) -> str:
    """The name of an operator that is given as an object, or by name."""
    return target if isinstance(target, str) else str(getattr(target, "name", target))


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a function count the operations of an operator, or of several.

    It gets the shapes of the tensors among the arguments, other arguments as they are, and `out_shape`; with `get_raw`
    the arguments themselves and `out_val`. An operator is one of votive's, or the name of one, as of a custom operator.

    >>> from votive.utils.flop_counter import FlopCounterMode, register_flop_formula
    >>> @register_flop_formula("exp")
    ... def exp_flops(shape, out_shape=None, **kwargs):
    ...     return 10 * shape[0]
    >>> with FlopCounterMode(display=False) as counter:
    ...     y = votive.ones(3).exp()
    >>> counter.get_total_flops()
    30
    >>> del votive.utils.flop_formulas.FORMULAS["exp"]
    """

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            flop_formulas.FORMULAS[_name(target)] = _adapted(fn, get_raw)
        return fn

    return register


def _shape(x: Any) -> Any:
    return x.shape if hasattr(x, "_spec") else x


def _adapted(fn: Callable[..., Any], raw: bool) -> flop_formulas.Formula:
    if raw:
        return lambda args, out: int(fn(*args, out_val=out))
    return lambda args, out: int(fn(*(_shape(a) for a in args), out_shape=_shape(out)))


class FlopCounterMode(Observer):
    """Count the operations of everything that runs in a block, by module and operator; a table is printed at its end.

    A multiplication with an addition counts two. Products of matrices, convolutions and attention are counted,
    forward and backward; what is linear in its memory is not. `custom_mapping` adds formulas for one counter.

    >>> from votive.utils.flop_counter import FlopCounterMode
    >>> net = votive.nn.Linear(4, 8)
    >>> with FlopCounterMode(display=False) as counter:
    ...     net(votive.ones(2, 4)).sum().backward()
    >>> counter.get_total_flops()
    256
    """

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: dict[Any, Any] | None = None
    ) -> None:
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._own = {
            _name(op): fn if getattr(fn, "_get_raw", False) else _adapted(fn, False)
            for op, fn in (custom_mapping or {}).items()
        }

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        super().__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        if self.display:
            print(self.get_table(self.depth))

    def after(self, call: Call) -> None:
        op: Op = call.op
        first = call.result[0] if isinstance(call.result, (tuple, list)) and call.result else call.result
        own = self._own.get(op.name)
        flops = own(call.args, first) if own is not None else flop_formulas.count(op.name, call.args, call.result)
        if not flops:
            return
        path = str(call.module_path)
        parts = path.split(".") if path else []
        for place in ["Global", *(f"Global.{'.'.join(parts[: i + 1])}" for i in range(len(parts)))]:
            self.flop_counts[place][op.name] += flops

    def get_total_flops(self) -> int:
        """All operations that were counted."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """Operations by module, "Global" being all, and by operator."""
        return {place: dict(counts) for place, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts down to a depth of modules."""
        depth = self.depth if depth is None else depth
        depth = 999999 if depth is None else depth
        total = self.get_total_flops()
        rows: list[tuple[str, str, str]] = []
        for place in sorted(self.flop_counts):
            level = place.count(".")
            if level > depth:
                continue
            counts = self.flop_counts[place]
            label = " " * level + place
            rows.append((label, _text(sum(counts.values()), total), _percent(sum(counts.values()), total)))
            rows += [(f"{' ' * level} - {name}", _text(n, total), _percent(n, total)) for name, n in counts.items()]
        names = ("Module", "FLOP", "% Total")
        rows = rows or [("Global", "0", "0%")]
        wide = [max(len(name), *(len(row[i]) for row in rows)) for i, name in enumerate(names)]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, wide, strict=True)).rstrip() for row in (names, *rows)]
        return "\n".join([lines[0], "  ".join("-" * w for w in wide), *lines[1:]])


def _text(n: int, total: int) -> str:
    index = max(0, min(len(SUFFIXES) - 1, (len(str(total)) - 2) // 3))
    return f"{n / 1000**index:.3f}{SUFFIXES[index]}" if index else str(n)


def _percent(n: int, total: int) -> str:
    return f"{n / total * 100:.2f}%" if total else "0%"
