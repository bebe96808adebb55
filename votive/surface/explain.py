"""`explain`: what an operator is, where it stands, how it is differentiated, and what runs it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..backends.base import TABLE
from ..backends.cpu import native
from ..backends.cpu.native.loader import codes
from ..backends.cpu.native.program import FLOAT, linearise
from ..core.blocks import FORMATS, block_dtype
from ..core.dtype import float32
from ..core.similar import did_you_mean
from ..formula import Formula, NotDifferentiable, to_cpp, to_numpy, to_text, to_triton
from ..formula.expr import walk
from ..formula.wgsl import to_wgsl
from ..ops.registry import COMPOSITES, OPS, Composite, Op
from ..ops.schema import REQUIRED
from .block_tensor import BlockTensor


def _place(at: tuple[str, int]) -> str:
    from pathlib import Path

    try:
        file = str(Path(at[0]).relative_to(Path(__file__).parents[2]))
    except ValueError:
        file = at[0]
    return f"{file}:{at[1]}"


def _indent(text: str) -> str:
    return "\n".join("    " + line if line else line for line in text.rstrip().splitlines())


def _find(what: object) -> Op | Composite:
    """The operator meant by a name, a public path, a function or a method."""
    if isinstance(what, (Op, Composite)):
        return what
    name = what if isinstance(what, str) else getattr(what, "__name__", str(what))
    for table in (OPS, COMPOSITES):
        if name in table:
            return table[name]
    short = name.rsplit(".", 1)[-1]
    for item in [*OPS.values(), *COMPOSITES.values()]:
        if short in (item.name, *item.aliases) or name in item.also:
            return item
    if short.endswith("_") and not isinstance(what, Op):
        return _find(short[:-1])
    known = [n.rsplit(".", 1)[-1] for n in [*OPS, *COMPOSITES] if not n.startswith("_")]
    hint = did_you_mean(short, [n for n in known if not n.startswith("_")])
    hint = hint or " `votive explain --list` shows all names."
    raise KeyError(f"explain: no operator is called {name!r}.{hint}")


def _static(op: Op) -> tuple[Any, ...]:
    """Static arguments at their defaults, or a plausible value where there is none."""
    stand_in = {"int": 1, "float": 1.0, "number": 2, "bool": False, "str": "", "dtype": None}
    return tuple(
        stand_in.get(a.type) if a.default is REQUIRED else a.default for a in op.schema.args if not a.is_runtime
    )


def _formula_part(op: Op) -> list[str]:
    static = _static(op)
    formula = op.formula(static)
    named = [a.name for a in op.schema.args if not a.is_runtime]
    at = ", ".join(f"{n}={v!r}" for n, v in zip(named, static, strict=True))
    lines = [f"Formula{' with ' + at if at else ''}", f"    y = {to_text(formula.body)}", ""]
    if op.differentiable:
        lines += ["Gradient, derived from the formula" + (" (hand-given parts marked *)" if formula.grads else "")]
        for p in formula.params:
            lines.append("    " + _gradient_line(formula, p))
        lines.append("")
    else:
        lines += ["Gradient", "    none: the result is not differentiable", ""]
    names = list(formula.params)
    lines += [_native_line(formula), ""] if native.available else []
    lines += ["Kernel on cpu (NumPy, generated)", _indent(to_numpy(formula.body, op.name, names)), ""]
    lines += ["The same as C++ (generated)", _indent(to_cpp(formula.body, op.name, names)), ""]
    lines += ["The same as Triton (generated)", _indent(to_triton(formula.body, op.name, names)), ""]
    if not any(isinstance(e.value, complex) for e in walk(formula.body)):
        lines += ["The same as WGSL (generated)", _indent(to_wgsl(formula.body, op.name, names)), ""]
    return lines


def _native_line(formula: Formula) -> str:
    """How the native module computes a formula in float32."""
    linear = linearise(formula.body, list(formula.params))
    if linear is None or any(name not in FLOAT for name, _ in linear.steps):
        return "Kernel on cpu (native): none, a primitive is missing there"
    if len(linear.steps) > 1 and native.module.has_tile(linear.key(), codes[float32]):
        return f"Kernel on cpu (native, {native.module.level}): compiled whole"
    how = ", ".join(name for name, _ in linear.steps) or "copy"
    return f"Kernel on cpu (native, {native.module.level}): tile by tile: {how}"


def _gradient_line(formula: Formula, by: str) -> str:
    star = "*" if by in formula.grads else ""
    try:
        grad = formula.gradient(by)
    except NotDifferentiable as e:
        return f"d{by} = not implemented (through {e})"
    if grad is None:
        return f"d{by} = 0"
    kept = formula.needs(by)
    note = f"   keeps {', '.join(kept)}" if kept else "   keeps nothing"
    return f"d{by}{star} = {to_text(grad.body)}{note}"


def _source(fn: Callable[..., Any]) -> str:
    try:
        return inspect.cleandoc("\n" + inspect.getsource(fn))
    except (OSError, TypeError):
        return repr(fn)


def _structured_part(op: Op) -> list[str]:
    lines: list[str] = []
    if op.grad is None:
        why = "missing" if op.differentiable else "none: the result is not differentiable"
        lines += ["Gradient", f"    {why}", ""]
    else:
        lines.append("Gradient")
        rules = op.grad if isinstance(op.grad, dict) else {"all inputs": op.grad}
        seen: set[str] = set()
        for name, rule in rules.items():
            text = "zero" if rule is None else _source(rule)
            if rule is not None and text in seen:
                continue  # several lambdas on one line share their source
            seen.add(text)
            lines.append(_indent(f"d{name}:" if len(text.splitlines()) > 1 else f"d{name}: {text}"))
            if len(text.splitlines()) > 1:
                lines.append(_indent(_indent(text)))
        lines.append("")
    if op.kind == "view":
        return [*lines, "Kernel", "    none: a view of the same memory", ""]
    for (name, dev), rows in sorted(TABLE.items()):
        if name == op.name:
            for row in rows:
                what = f"Kernel on {dev} ({row.label}, priority {row.priority})"
                if row.kernel:
                    what += f": C++ `{row.kernel}`, called with"
                lines += [what, _indent(_source(row.fn)), ""]
    return lines


def explanation(op: object) -> str:
    """The text that `explain` prints.

    >>> print(votive.explanation("tanh").splitlines()[0])
    tanh(Tensor input)
    """
    if isinstance(op, block_dtype) or (isinstance(op, str) and op.lower().removeprefix("votive.") in FORMATS):
        from .block_text import format_text

        return format_text(op if isinstance(op, block_dtype) else FORMATS[op.lower().removeprefix("votive.")])
    if isinstance(op, BlockTensor):
        from .block_text import tensor_text

        return tensor_text(op)
    item = _find(op)
    if isinstance(item, Composite):
        head = f"{item.name}{inspect.signature(item.fn)}".replace(": Any", "").replace(" -> Any", "")
        body = ["Written with other operators", _indent(_source(item.fn)), ""]
    else:
        head = str(item.schema)
        body = _formula_part(item) if item.builder is not None else _structured_part(item)
    head += f"\n    defined in {_place(item.defined_at)}"
    if item.autocast:
        shown = ", ".join(f"{policy} on {device}" for device, policy in item.autocast.items())
        head += f"\n    under autocast: {shown}"
    lines = [head, "", _indent(item.doc), "", *body]
    return "\n".join(lines).rstrip() + "\n"


def explain(op: object) -> None:
    """Print an operator's schema, formula, derived gradient and kernels on each device.

    A block format (`votive.q4_k`) is shown by its bytes and bits, a tensor in blocks also by its first block;
    `votive.quant.open_block` gives any of them.

    >>> votive.explain("tanh")  # doctest: +ELLIPSIS
    tanh(Tensor input)
    ...
    >>> votive.explain(votive.q4_k)  # doctest: +ELLIPSIS
    q4_k: 256 numbers in 144 bytes, 4.5 bits each
        x = d s q - dmin m, s and m of six bits for each 32.
    ...
    """
    print(explanation(op))
