"""Elementwise operators on the GPU: a formula becomes the source of a Triton kernel. Three shapes
of kernel serve all layouts; what Triton lacks (rare functions) takes a trip to the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core import dtype as dt
from ...core.layout import Spec, broadcast_strides
from ...formula import Formula, to_triton
from ...formula.expr import Expr, walk
from ..cpu.reference.pointwise import _word
from . import device_math
from .data import CudaStorage, View
from .program import TYPE, Program
from .source import function

_TL = {
    "fp64": "tl.float64", "fp32": "tl.float32", "fp16": "tl.float16", "bf16": "tl.bfloat16",
    "i64": "tl.int64", "i32": "tl.int32", "i16": "tl.int16", "i8": "tl.int8", "u8": "tl.uint8",
    "u16": "tl.uint16", "u32": "tl.uint32", "u64": "tl.uint64", "fp8e4nv": "tl.float8e4nv",
    "fp8e5": "tl.float8e5",
}  # fmt: skip
_PLAIN = frozenset([
    "const", "var", "annotated", "where", "add", "sub", "mul", "lt", "le", "gt", "ge", "eq", "ne",
    "logical_and", "logical_or", "logical_xor", "logical_not", "bitwise_and", "bitwise_or",
    "bitwise_xor", "bitwise_not",
])  # fmt: skip
_SAME = frozenset(
    ["floor", "ceil", "trunc", "round", "sgn", "isnan", "isinf", "isposinf", "isneginf", "isfinite",
     "fmax", "fmin"]
)  # fmt: skip
BLOCK = 1024
FEW = (
    128  # elements of a block of special functions: they fill the registers with their own numbers
)


def can(formula: Formula, kind: str) -> bool:
    """Whether every primitive of the formula has a device function."""
    return all(
        e.op in _PLAIN or (kind == "i" and e.op in _SAME) or hasattr(device_math, f"{kind}_{e.op}")
        for e in walk(formula.body)
    )


def jit(source: str, name: str, **known: Any) -> Any:
    """A Triton function from text that calls scalar functions as `m.f_exp`, and the `known`."""
    return function(source, name, m=device_math, **known)


def merged(
    shape: tuple[int, ...], strides: list[tuple[int, ...]]
) -> tuple[list[int], list[list[int]]]:
    """Dimensions ordered by the first operand's strides, joined where all operands allow it.

    >>> merged((4, 1, 6), [(6, 6, 1), (6, 6, 1)])
    ([24], [[1], [1]])
    """
    dims = [d for d in range(len(shape)) if shape[d] != 1]
    dims.sort(key=lambda d: -strides[0][d])
    return joined(shape, dims, strides)


def joined(
    shape: tuple[int, ...], dims: list[int], strides: list[tuple[int, ...]]
) -> tuple[list[int], list[list[int]]]:
    """Sizes and strides of some dimensions in order, neighbours joined where all operands agree."""
    sizes: list[int] = []
    out: list[list[int]] = [[] for _ in strides]
    for d in dims:
        if sizes and all(o[-1] == s[d] * shape[d] for o, s in zip(out, strides, strict=True)):
            sizes[-1] *= shape[d]
            for o, s in zip(out, strides, strict=True):
                o[-1] = s[d]
        else:
            sizes.append(shape[d])
            for o, s in zip(out, strides, strict=True):
                o.append(s[d])
    return sizes, out


def _name(formula: Formula) -> str:
    name = "".join(ch if ch.isalnum() else "_" for ch in formula.name)
    return name if name.isidentifier() else f"k_{name}"


class Shape:
    """Which kernel a set of layouts gets: the text of its index arithmetic and its numbers."""

    def __init__(
        self, sizes: list[int], strides: list[list[int]], numel: int, block: int = BLOCK
    ) -> None:
        self.block = block
        self.params: list[str] = []
        self.values: list[int] = []
        self.constants: dict[str, int] = {}
        self.lines: list[str] = []
        reach = max(
            [numel]
            + [sum(abs(s) * (n - 1) for s, n in zip(st, sizes, strict=True)) for st in strides]
        )
        self.wide = reach >= 2**31 - 2**20
        self.offsets: list[str]  # per operand; "" when it is a single value
        if len(sizes) <= 1:
            self._flat(sizes, strides, numel)
        elif sizes[-1] >= 32 or (len(sizes) == 2 and sizes[-1] * 2 >= 32):
            self._tiles(sizes, strides)
        else:
            self._divided(sizes, strides, numel)

    def _arg(self, name: str, value: int) -> str:
        """A number that the kernel is given, or a constant where that makes it faster."""
        if value in (0, 1):
            return str(value)
        self.params.append(name)
        self.values.append(value)
        return name

    def _int(self, text: str) -> str:
        return f"({text}).to(tl.int64)" if self.wide else text

    def _flat(self, sizes: list[int], strides: list[list[int]], numel: int) -> None:
        self.params, self.values = ["n"], [numel]
        self.constants = {"BLOCK": self.block}
        self.lines = [
            f"i = {self._int('tl.program_id(0)')} * BLOCK + tl.arange(0, BLOCK)",
            "inside = i < n",
        ]
        self.grid: tuple[int, ...] = (-(-numel // self.block),)
        self.offsets = []
        for k, s in enumerate(strides):
            step = s[0] if s else 0
            if step == 0:
                self.offsets.append("" if k else "i * 0")
            else:
                self.offsets.append("i" if step == 1 else f"i * {self._arg(f's{k}', step)}")

    def _tiles(self, sizes: list[int], strides: list[list[int]]) -> None:
        """Blocks over the innermost dimension and one other: the one that a transposed operand
        is dense along, so that both sides are read and written in whole lines.
        """
        last = len(sizes) - 1
        other = last - 1
        for s in strides[1:]:
            dense = [d for d in range(last) if s[d] == 1 and sizes[d] > 1]
            if dense and s[last] not in (0, 1):
                other = dense[0]
        turned = any(s[other] == 1 and s[last] not in (0, 1) for s in strides[1:])
        wide = 1 << (sizes[last] - 1).bit_length()
        if turned:
            bn, bm = 32, self.block // 32
        else:
            bn = min(self.block, wide)
            bm = min(self.block // bn, 1 << (sizes[other] - 1).bit_length())
        self.constants = {"BM": bm, "BN": bn}
        rest = [d for d in range(last) if d != other]
        m, n = self._arg("M", sizes[other]), self._arg("N", sizes[last])
        self.lines = [
            f"n = {self._int('tl.program_id(0)')} * BN + tl.arange(0, BN)[None, :]",
            f"mi = {self._int('tl.program_id(1)')} * BM + tl.arange(0, BM)[:, None]",
            f"inside = (mi < {m}) & (n < {n})",
        ]
        count = 1
        if rest:
            self.lines.append(f"r = {self._int('tl.program_id(2)')}")
            for d in reversed(rest):
                size = self._arg(f"S{d}", sizes[d])
                if d != rest[0]:
                    self.lines += [f"i{d} = r % {size}", f"r = r // {size}"]
                else:
                    self.lines.append(f"i{d} = r")
                count *= sizes[d]
        self.offsets = []
        for k, s in enumerate(strides):
            terms = [("n", last), ("mi", other), *((f"i{d}", d) for d in rest)]
            parts = []
            for index, d in terms:
                step = self._arg(f"s{k}_{d}", s[d])
                if step != "0":
                    parts.append(index if step == "1" else f"{index} * {step}")
            text = " + ".join(parts)
            if k == 0 and not {"m", "n"} <= {p[0] for p in parts}:
                text += " + mi * 0 + n * 0"
            elif text and not any(p.split()[0] in ("n", "mi") for p in parts):
                text += " + n * 0"  # the same for the whole tile, but masked like the rest
            self.offsets.append(text)
        self.grid = (-(-sizes[last] // bn), -(-sizes[other] // bm), count)
        if self.grid[1] > 65535 or self.grid[2] > 65535:
            self._divided(sizes, strides, _product(sizes))

    def _divided(self, sizes: list[int], strides: list[list[int]], numel: int) -> None:
        """Every element finds its place by division: for short or odd dimensions."""
        self.params, self.values = ["n"], [numel]
        self.constants = {"BLOCK": self.block}
        self.lines = [
            f"i = {self._int('tl.program_id(0)')} * BLOCK + tl.arange(0, BLOCK)",
            "inside = i < n",
            "r = i",
        ]
        for d in range(len(sizes) - 1, 0, -1):
            size = self._arg(f"S{d}", sizes[d])
            self.lines += [f"i{d} = r % {size}", f"r = r // {size}"]
        self.lines.append("i0 = r")
        self.offsets = []
        for k, s in enumerate(strides):
            parts = []
            for d in range(len(sizes)):
                step = self._arg(f"s{k}_{d}", s[d])
                if step != "0":
                    parts.append(f"i{d}" if step == "1" else f"i{d} * {step}")
            self.offsets.append(" + ".join(parts) or ("" if k else "i * 0"))
        self.grid = (-(-numel // self.block),)


def _product(sizes: list[int]) -> int:
    out = 1
    for s in sizes:
        out *= s
    return out


def _load(k: int, role: Any, offset: str, T: str) -> list[str]:
    """Lines that bring operand k into the compute type."""
    have, compute, via = role
    if have is None:
        lines = [f"v{k} = a{k}"]
        if via is not None:
            lines.append(f"v{k} = v{k}.to({_TL[TYPE[via]]})")
        return [*lines, f"v{k} = v{k}.to({T})"]
    # A plain name for an address that is the same in the whole block keeps the load a scalar one.
    place = f"a{k} + {offset}" if offset else f"a{k}"
    mask = ", mask=inside" if offset else ""
    lines = [f"v{k} = tl.load({place}{mask})"]
    if have is dt.bool_:
        lines.append(f"v{k} = v{k} != 0")
        if compute is dt.bool_ and T != "tl.int32":
            return lines
        return [*lines, f"v{k} = m.as_number(v{k}, {T})"] if compute is not None else lines
    if via is not None and via is not have:
        lines.append(f"v{k} = v{k}.to({_TL[TYPE[via]]})")
    if have.is_floating_point and not compute.is_floating_point and compute is not dt.int64:
        lines.append(f"v{k} = v{k}.to(tl.int64)")
    if TYPE[have] != T:
        lines.append(f"v{k} = v{k}.to({T})")
    return lines


def build(
    formula: Formula, names: list[str], roles: list[Any], inputs: list[Spec | None], out: Spec
) -> tuple[Program, list[int], tuple[int, ...]] | None:
    """(program, the numbers it is given after its operands, grid) for given layouts."""
    values = {c for _, c, _ in roles if c is not None and c is not dt.bool_} or {dt.bool_}
    if len(values) != 1:
        return None
    (compute,) = values
    if compute.is_complex or out.dtype.is_complex:
        from . import complex_pointwise

        return complex_pointwise.build(formula, names, roles, inputs, out)
    if out.dtype not in TYPE or compute not in TYPE:
        return None
    if any(have is not None and have not in TYPE for have, _, _ in roles):
        return None
    kind = "f" if compute.is_floating_point else "i"
    if not can(formula, kind):
        return None
    T = _TL["i32" if compute is dt.bool_ else TYPE[compute]]
    strides = [out.strides]
    for s in inputs:
        strides.append(
            (0,) * out.ndim if s is None else broadcast_strides(s.shape, s.strides, out.shape)
        )
    heavy = any(device_math.is_special(e.op) for e in walk(formula.body))
    shape = Shape(*merged(out.shape, strides), out.numel, FEW if heavy else BLOCK)
    body = formula.body
    fast = out.dtype in dt.HALF
    if compute is dt.bool_:
        body = _complemented(body)
    text = to_triton(body, "formula", names, kind, fast)
    lines = list(shape.lines)
    for k, role in enumerate(roles):
        lines += _load(k, role, shape.offsets[k + 1], T)
    lines.append(f"y = formula({', '.join(f'v{k}' for k in range(len(roles)))}, {T})")
    stored = _TL[TYPE[out.dtype]]
    if out.dtype is dt.bool_:
        lines.append("y = tl.where(y, 1, 0)" if body.is_bool else "y = tl.where(y != 0, 1, 0)")
    elif body.is_bool:
        lines.append(f"y = m.as_number(y, {stored})")
    elif kind == "f" and not out.dtype.is_floating_point and out.dtype is not dt.int64:
        lines.append("y = y.to(tl.int64)")
    lines.append(f"tl.store(o + {shape.offsets[0]}, y.to({stored}), mask=inside)")
    name = _name(formula)
    args = ["o", *(f"a{k}" for k in range(len(roles))), *shape.params]
    args += [f"{c}: tl.constexpr" for c in shape.constants]
    source = text + f"\n\n@triton.jit\ndef {name}({', '.join(args)}):\n"
    source += "".join(f"    {line}\n" for line in lines)
    types = ["*" + TYPE[out.dtype]]
    types += [number_of(compute) if have is None else "*" + TYPE[have] for have, _, _ in roles]
    types += ["i64" if shape.wide else "i32"] * len(shape.params)
    program = Program(jit(source, name), types, shape.constants)
    first = 1 + len(roles)
    program.divisible = tuple(first + i for i, v in enumerate(shape.values) if v % 16 == 0)
    return program, shape.values, shape.grid


def number_of(compute: dt.dtype) -> str:
    """The type in which a number enters a kernel that computes in `compute`."""
    if not compute.is_floating_point:
        return "i64"
    return "fp64" if compute is dt.float64 else "fp32"


def _complemented(body: Any) -> Any:
    """The formula on truth values, where the complement is the negation."""
    if not body.args:
        return body
    args = tuple(_complemented(a) for a in body.args)
    op = "logical_not" if body.op == "bitwise_not" else body.op
    return Expr(op, args, body.value)


def _value(have: dt.dtype | None, compute: dt.dtype) -> Callable[[Any], Any] | None:
    """How an argument becomes what the program takes; None: it is a view with an address."""
    if have is None:
        if compute.is_complex:
            return complex
        if compute.is_floating_point:
            return lambda v: float(v.real if isinstance(v, complex) else v)
        return lambda v: _signed(_word(int(v)))
    return None


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def compile_formula(
    formula: Formula, names: list[str], roles: list[Any], inputs: list[Spec | None], out: Spec,
    empty: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """See `backends.base.Backend.pointwise`."""
    # A 0-d tensor of the CPU joins as a number.
    loose = [i for i, s in enumerate(inputs) if s is not None and s.device.type == "cpu"]
    if loose:
        return _with_loose(formula, names, roles, inputs, out, empty, loose)
    casts = [(i, f) for i, (h, c, _) in enumerate(roles) if (f := _value(h, c)) is not None]
    device = out.device.index or 0
    nbytes = out.nbytes
    bound = build(formula, names, roles, inputs, out) if out.numel else ()
    if bound is None:
        from .trip import pointwise

        return pointwise(formula, names, roles, inputs, out)
    programs: dict[Spec, Any] = {out: bound}

    def run(values: Any, to: int, how: Any) -> None:
        program, numbers, grid = how
        if casts:
            values = list(values)
            for i, f in casts:
                values[i] = f(values[i])
        program(grid, to, *[v.ptr if v.__class__ is View else v for v in values], *numbers)

    def compute(*values: Any) -> tuple[Any, Any]:
        storage = CudaStorage(nbytes, device)
        if bound:
            run(values, storage.ptr, bound)
        return storage, View(storage.ptr, out, storage)

    def into(values: Any, target: View) -> None:
        how = programs.get(target.spec)
        if how is None:
            how = build(formula, names, roles, inputs, target.spec) if target.spec.numel else ()
            programs[target.spec] = how
        if how:
            run(values, target.ptr, how)

    return compute, into


def _with_loose(
    formula: Formula, names: list[str], roles: list[Any], inputs: list[Spec | None], out: Spec,
    empty: Any, loose: list[int],
) -> tuple[Any, Any]:  # fmt: skip
    """The same with 0-d CPU tensors, whose values are read when the kernel is launched."""
    roles, inputs = list(roles), list(inputs)
    for i in loose:
        have, c, via = roles[i]
        if have is dt.bool_ and c is dt.bool_:
            inputs[i] = inputs[i].like(device=out.device)  # type: ignore[union-attr]
            continue
        inputs[i] = None
        roles[i] = (None, c, via if via is not None else (have if have in dt.HALF else None))
    compute, into = compile_formula(formula, names, roles, inputs, out, empty)
    from .trip import lifted

    def read(values: Any) -> list[Any]:
        values = list(values)
        for i in loose:
            values[i] = values[i].item() if inputs[i] is None else lifted(values[i], inputs[i])
        return values

    return lambda *values: compute(*read(values)), lambda values, to: into(read(values), to)
