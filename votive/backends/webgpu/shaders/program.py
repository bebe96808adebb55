"""Kernels: a WGSL body over operands of given dtypes, compiled once per way in which operands share memory.

The body calls `x_at(i)` and `x_set(i, v)` for the element i of the operand x, counted from its first one, and reads its
numbers as `P.n`. Memory that is written may not be bound twice, so operands in one buffer share a binding.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ....core import dtype as dt
from ..runtime import runtime as rt
from ..runtime.gpu import NUMBERS
from . import elementary, floats, integers, special, types

LIBRARY = {**floats.FUNCTIONS, **elementary.FUNCTIONS, **special.FUNCTIONS, **integers.FUNCTIONS, **types.FUNCTIONS}
_GLOBALS = {**floats.GLOBALS, **elementary.GLOBALS}
_WORD = re.compile(r"[A-Za-z_]\w*")
_FIELD = {"I": "u32", "i": "i32", "f": "f32"}
# Threads of a workgroup where a kernel does not say.
GROUP = 64
Operand = tuple[str, dt.dtype, str]  # name, dtype, "r" or "w"


@lru_cache(1024)
def _needs(name: str) -> tuple[str, ...]:
    return tuple(n for n in dict.fromkeys(_WORD.findall(LIBRARY[name])) if n in LIBRARY and n != name)


def library(text: str) -> str:
    """The functions that a text calls, and those that they call, in an order that shows each before it is used."""
    found: dict[str, None] = {}

    def add(name: str) -> None:
        if name not in found:
            for other in _needs(name):
                add(other)
            found[name] = None

    for name in dict.fromkeys(_WORD.findall(text)):
        if name in LIBRARY:
            add(name)
    functions = "\n".join(LIBRARY[name] for name in found)
    shared = "\n".join(v for k, v in _GLOBALS.items() if k in functions or k in text)
    return f"{shared}\n{functions}\n"


class Program:
    """A kernel. `numbers` are its parameters: (name, "I" u32, "i" i32 or "f" f32)."""

    def __init__(
        self,
        name: str,
        operands: Sequence[Operand],
        numbers: Sequence[tuple[str, str]],
        body: str,
        *,
        group: int | tuple[int, int] = GROUP,
        head: str = "",
        faults: bool = False,
    ) -> None:
        self.name = "".join(ch if ch.isalnum() else "_" for ch in name)
        self.operands, self.body, self.head = list(operands), body, head
        if faults:
            self.operands.append(("faults", dt.uint32, "w"))
        self.faults = faults
        self.fields = [*numbers, *[(f"o_{n}", "I") for n, _, _ in self.operands]]
        self.group = group if isinstance(group, tuple) else (group, 1)
        layout = struct.Struct("<" + "".join(k for _, k in self.fields))
        if layout.size > NUMBERS:
            raise ValueError(f"{name}: a kernel takes at most {NUMBERS // 4} numbers, not {len(self.fields)}.")
        self.pack = layout.pack_into
        self.variants: dict[tuple[int, ...], tuple[Any, str, tuple[int, ...]]] = {}
        self.plain = tuple(range(len(self.operands)))

    def text(self, shared: tuple[int, ...] | None = None) -> str:
        """The WGSL, with operands of one number in `shared` in one buffer."""
        shared = self.plain if shared is None else shared
        count = max(shared, default=-1) + 1
        given = list(zip(shared, self.operands, strict=True))
        written = [any(s == k and o[2] == "w" for s, o in given) for k in range(count)]
        atomic = [
            any(s == k and o[2] == "w" and (o[1].itemsize < 4 or f"&{o[0]}_word" in self.body) for s, o in given)
            for k in range(count)
        ]
        lines = [f"struct Numbers {{ {', '.join(f'{n}: {_FIELD[k]}' for n, k in self.fields)} }}"]
        lines.append("@group(0) @binding(0) var<uniform> P: Numbers;")
        for k in range(count):
            access = "read_write" if written[k] else "read"
            kind = "atomic<u32>" if atomic[k] else "u32"
            lines.append(f"@group(0) @binding({k + 1}) var<storage, {access}> b{k}: array<{kind}>;")
        used = self.head + self.body
        for (name, d, mode), k in zip(self.operands, shared, strict=True):
            T = types.WGSL[types.KIND[d]]
            if f"{name}_at" in used:
                body = types.load(f"b{k}", d, atomic[k])
                lines.append(f"fn {name}_at(i: u32) -> {T} {{ let e = P.o_{name} + i; {body} }}")
            if mode == "w" and f"{name}_set" in used:
                body = types.store(f"b{k}", d, atomic[k])
                lines.append(f"fn {name}_set(i: u32, v: {T}) {{ let e = P.o_{name} + i; {body} }}")
            used = used.replace(f"{name}_word[", f"b{k}[")
        if self.faults:
            k = shared[-1]
            lines.append(
                "fn fail(number: u32, value: i32, size: u32) {\n"
                f"  if (b{k}[0] == 0u) {{ b{k}[0] = number; b{k}[1] = bitcast<u32>(value); b{k}[2] = size; }}\n}}"
            )
        head = self.head
        body = self.body
        for (name, _, _), k in zip(self.operands, shared, strict=True):
            head, body = head.replace(f"{name}_word[", f"b{k}["), body.replace(f"{name}_word[", f"b{k}[")
        x, y = self.group
        main = (
            f"@compute @workgroup_size({x}, {y})\n"
            "fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_id) lid: vec3<u32>, "
            "@builtin(num_workgroups) nwg: vec3<u32>) {\n"
            "  let row = wid.x + wid.y * nwg.x;\n"
            "  let lane = lid.x;\n"
            f"  let index = row * {x}u + lane;\n{body}\n}}\n"
        )
        own = "\n".join(lines) + "\n" + head + "\n" + main
        return library(own) + own

    def _variant(self, shared: tuple[int, ...]) -> tuple[Any, str, tuple[int, ...]]:
        count = max(shared, default=-1) + 1
        signature = "".join(
            "w" if any(s == k and o[2] == "w" for s, o in zip(shared, self.operands, strict=True)) else "r"
            for k in range(count)
        )
        first = tuple(shared.index(k) for k in range(count))
        text = self.text(shared)
        key = (signature, text)
        pipeline = _pipelines.get(key)
        if pipeline is None:
            pipeline = _pipelines[key] = rt.gpu.pipeline(text, signature, self.name)
            compiled.setdefault(self.name, []).append(text)
        found = self.variants[shared] = (pipeline, signature, first)
        return found

    def __call__(self, groups: int | tuple[int, int, int], views: Sequence[Any], *numbers: Any) -> None:
        """Run over memory that the views show; `groups` workgroups, counted by `row`."""
        if isinstance(groups, int):
            if not groups:
                return
            most = rt.gpu.max_groups
            grid = (groups, 1, 1) if groups <= most else (most, -(-groups // most), 1)
        else:
            grid = groups
        buffers = [v.storage.buffer for v in views]
        offsets = [v.offset for v in views]
        if self.faults:
            buffers.append(rt.faults)
            offsets.append(0)
            rt.may_fail()
        shared = self.plain
        if len({*map(id, buffers)}) != len(buffers):
            seen: dict[int, int] = {}
            shared = tuple([seen.setdefault(id(b), len(seen)) for b in buffers])
        found = self.variants.get(shared) or self._variant(shared)
        pipeline, signature, first = found
        pack, given = self.pack, (*numbers, *offsets)
        if shared is not self.plain:
            buffers = [buffers[k] for k in first]
        rt.run(pipeline, signature, tuple(buffers), lambda memory, at: pack(memory, at, *given), grid)


# Compiled kernels, by how their buffers are bound and their text.
_pipelines: dict[tuple[str, str], Any] = {}
# Their texts by name, for whoever wants to read them.
compiled: dict[str, list[str]] = {}


def groups_for(n: int, group: int = GROUP) -> int:
    """How many workgroups have a thread for each of n."""
    return -(-n // group)
