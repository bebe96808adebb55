"""Elementwise kernels on complex numbers. Triton has no type for them: a complex64 is read and
written as one word of 64 bits, a complex128 as two doubles, and the formula becomes two of reals.
"""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from ....core.layout import Spec, broadcast_strides
from ....formula import Formula, const, to_triton, var
from ....formula.pairs import NoPair, parts
from .pointwise import _TL, _load, _name, can, jit, number_of
from .program import TYPE, Program
from .tiles import Shape, merged


def pairs_of(spec: Spec) -> Spec:
    """A complex spec as reals with a last dimension of 2, in the same memory."""
    strides = (*(s * 2 for s in spec.strides), 1)
    return spec.like((*spec.shape, 2), dtype=spec.dtype.to_real(), strides=strides)


def _words(dtype: dt.dtype) -> str:
    return "i64" if dtype is dt.complex64 else "fp64" if dtype.is_complex else TYPE[dtype]


def _read(k: int, have: dt.dtype, offset: str, T: str) -> list[str]:
    """Lines that bring complex operand k into `v` and `w`."""
    place = f"a{k} + {offset}" if offset else f"a{k}"
    mask = ", mask=inside" if offset else ""
    if have is dt.complex64:
        return [
            f"u{k} = tl.load({place}{mask})",
            f"v{k} = u{k}.to(tl.int32).to(tl.float32, bitcast=True).to({T})",
            f"w{k} = (u{k} >> 32).to(tl.int32).to(tl.float32, bitcast=True).to({T})",
        ]
    return [f"v{k} = tl.load({place}{mask}).to({T})", f"w{k} = tl.load({place} + 1{mask}).to({T})"]


def _write(dtype: dt.dtype, offset: str) -> list[str]:
    """Lines that store `y` and `z` as a complex number, in its own type."""
    if dtype is dt.complex64:
        word = "({}).to(tl.float32).to(tl.int32, bitcast=True).to(tl.int64)"
        return [
            f"low = {word.format('y')} & 0xFFFFFFFF",
            f"high = {word.format('z')} << 32",
            f"tl.store(o + {offset}, low | high, mask=inside)",
        ]
    return [
        f"tl.store(o + {offset}, y.to(tl.float64), mask=inside)",
        f"tl.store(o + {offset} + 1, z.to(tl.float64), mask=inside)",
    ]


class Paired:
    """A program whose complex numbers are given as two."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def __call__(self, grid: tuple[int, ...], *args: Any) -> None:
        flat: list[Any] = []
        for a in args:
            if a.__class__ is complex:
                flat += (a.real, a.imag)
            else:
                flat.append(a)
        self.program(grid, *flat)


def build(
    formula: Formula, names: list[str], roles: list[Any], inputs: list[Spec | None], out: Spec
) -> tuple[Any, list[int], tuple[int, ...]] | None:
    """See `pointwise.build`."""
    kinds = {c for _, c, _ in roles if c is not None and c is not dt.bool_}
    if len(kinds) != 1:
        return None
    (compute,) = kinds
    real = compute.to_real()
    if real not in (dt.float32, dt.float64):
        return None
    given, params, types = {}, [], [f"*{_words(out.dtype)}"]
    for k, (name, (have, c, _)) in enumerate(zip(names, roles, strict=True)):
        if have is not None and not have.is_complex and have not in TYPE:
            return None
        whole = c is not None and c.is_complex
        re, im = var(f"r{k}"), var(f"i{k}")
        if have is None:
            types += [number_of(real)] * (2 if whole else 1)
        else:
            types.append("*" + _words(have))
            # A real tensor meets complex ones as x + 0i.
            im = im if have.is_complex else const(0.0)
        given[name] = (re, im if whole else None)
        params += [f"r{k}"] + ([f"i{k}"] if whole and im.op == "var" else [])
    try:
        y, z = parts(formula.body, given)
    except NoPair:
        return None
    roots = (y,) if z is None or not (out.dtype.is_complex or out.dtype is dt.bool_) else (y, z)
    if not all(can(Formula(formula.name, (), root), "f") for root in roots):
        return None
    return _program(formula, roles, inputs, out, real, params, types, roots)


def _program(
    formula: Formula,
    roles: list[Any],
    inputs: list[Spec | None],
    out: Spec,
    real: dt.dtype,
    params: list[str],
    types: list[str],
    roots: tuple[Any, ...],
) -> tuple[Any, list[int], tuple[int, ...]]:
    T = _TL[TYPE[real]]
    strides = [_steps(out, out.shape)]
    strides += [(0,) * out.ndim if s is None else _steps(s, out.shape) for s in inputs]
    shape = Shape(*merged(out.shape, strides), out.numel)
    lines, args = list(shape.lines), ["o"]
    for k, (have, c, via) in enumerate(roles):
        args.append(f"a{k}")
        if have is not None and have.is_complex:
            lines += _read(k, have, shape.offsets[k + 1], T)
        elif have is None and c.is_complex:
            args.append(f"b{k}")
            lines += [f"v{k} = a{k}.to({T})", f"w{k} = b{k}.to({T})"]
        else:
            c = c.to_real() if c is not None and c.is_complex else c
            lines += _load(k, (have, c, via), shape.offsets[k + 1], T)
    values = ", ".join(p.replace("r", "v").replace("i", "w") for p in params)
    both = len(roots) == 2
    lines.append(f"{'y, z' if both else 'y'} = formula({values}, {T})")
    if out.dtype is dt.bool_:
        test = "(y != 0) | (z != 0)" if both else "y" if roots[0].is_bool else "y != 0"
        lines.append(f"y = tl.where({test}, 1, 0)")
    elif roots[0].is_bool:
        lines.append(f"y = m.as_number(y, {T})")
    if out.dtype.is_complex:
        if not both:
            lines.append(f"z = tl.full((), 0.0, {T})")
        lines += _write(out.dtype, shape.offsets[0])
    else:
        if out.dtype.category == dt.INT and out.dtype is not dt.int64:
            lines.append("y = y.to(tl.int64)")
        stored = _TL[TYPE[out.dtype]]
        lines.append(f"tl.store(o + {shape.offsets[0]}, y.to({stored}), mask=inside)")
    name = _name(formula)
    args += [*shape.params, *(f"{c}: tl.constexpr" for c in shape.constants)]
    source = to_triton(roots, "formula", params, "f")
    source += f"\n\n@triton.jit\ndef {name}({', '.join(args)}):\n"
    source += "".join(f"    {line}\n" for line in lines)
    first = len(types)
    types = types + ["i64" if shape.wide else "i32"] * len(shape.params)
    # Formulas of pairs of doubles are long: half the elements per thread fit into registers.
    warps = 8 if real is dt.float64 else 4
    program = Program(jit(source, name), types, shape.constants, warps=warps)
    program.divisible = tuple(first + i for i, v in enumerate(shape.values) if v % 16 == 0)
    return Paired(program), shape.values, shape.grid


def _steps(spec: Spec, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in the words that a kernel reads."""
    steps = broadcast_strides(spec.shape, spec.strides, shape)
    return tuple(2 * s for s in steps) if spec.dtype is dt.complex128 else steps
