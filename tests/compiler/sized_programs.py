"""Random programs that compute with sizes: shapes made of shapes, branches and loops on them, windows, numbers that
come from them. Knows nothing of the compiler.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import votive

from . import random_programs
from .random_programs import Inputs, Writer

# {a}, {b}: tensors; {n}: the new name.
SIZED = [
    "{n} = {a}.reshape({a}.shape[0], -1)", "{n} = {a}.reshape(-1, {a}.shape[-1])", "{n} = {a}.reshape({a}.numel())",
    "{n} = {a} / {a}.shape[0]", "{n} = {a} * {a}.numel()", "{n} = {a} * (1 / {a}.size(-1))",
    "{n} = {a} * {a}.size(0) ** -0.5", "{n} = {a} + votive.arange({a}.shape[-1])",
    "{n} = {a} * votive.arange(1, {a}.shape[-1] + 1) * 0.1", "{n} = {a}[: {a}.shape[0] // 2]",
    "{n} = {a}[..., {a}.shape[-1] // 2 :]", "{n} = {a}[{a}.shape[0] - 1]", "{n} = {a}[1:-1]", "{n} = {a}[-2:]",
    "{n} = {a}.narrow(0, 1, {a}.shape[0] - 1)", "{n} = {a}.narrow(-1, 0, min({a}.shape[-1], 3))",
    "{n} = votive.cat([{a}, {a}[:1]], 0)", "{n} = votive.cat([{a}, {b}], -1)", "{n} = votive.stack([{a}, {a} * 2])",
    "{n} = votive.zeros({a}.shape[0], {a}.shape[-1]) + {a}.reshape(-1)[0]", "{n} = votive.zeros_like({a}) + {b}",
    "{n} = votive.ones({a}.shape[-1], {a}.shape[-1]).tril() @ {a}.reshape(-1, {a}.shape[-1]).T",
    "{n} = {a}.reshape(-1, {a}.shape[-1]) @ {a}.reshape(-1, {a}.shape[-1]).T",
    "{n} = {a}.unsqueeze(0).expand({a}.shape[0], *{a}.shape)", "{n} = {a}.expand({a}.shape[0] + 1, *{a}.shape)",
    "{n} = {a}.split({a}.shape[0] // 2 + 1)[0]", "{n} = {a}.chunk(3)[-1]", "{n} = {a}.split(2, -1)[-1]",
    "{n} = {a}.sum(0) if {a}.shape[0] > 4 else {a}.mean(0)",
    "if {a}.shape[0] > {a}.shape[-1]:\n    {n} = {a} * 2\nelse:\n    {n} = {a} - 1",
    "if {a}.shape[0] % 2 == 0:\n    {n} = {a} * 2\nelse:\n    {n} = {a} - 1",
    "if len({a}) == {b}.shape[0]:\n    {n} = {a} + 1\nelse:\n    {n} = {b} * 3",
    "{n} = {a}\nfor i in range(min({a}.shape[0], 3)):\n    {n} = {n} * 0.9 + i",
    "{n} = {a}\nfor i in range({a}.shape[-1] // 2):\n    {n} = {n} + {a}[..., i : i + 1]",
    "{n} = {a}\ni = 0\nwhile i * i < {a}.numel():\n    {n} = {n} * 0.8 + i\n    i += 2",
    "h, k = {a}.shape[0], {a}.shape[-1]\n"
    "{n} = votive.full((h, k), float(h)) * 0.1 + votive.full((h + k, k), 2.0)[:h]",
    "{n} = {a}.transpose(0, -1).reshape({a}.shape[-1], -1)", "{n} = {a}.flip(0)",
    "{n} = {a}.repeat(2, *([1] * ({a}.ndim - 1)))",
    "{n} = votive.softmax({a}.reshape(-1, {a}.shape[-1]), -1)", "{n} = {a}.cumsum(0)", "{n} = {a}.roll(1, 0)",
    "{n} = {a}.std(0)", "{n} = {a}.var(-1, keepdim=True) + {a}",
    "{n} = votive.nn.functional.layer_norm({a}, {a}.shape[-1:])",
    "{n} = votive.nn.functional.pad({a}, (1, {a}.shape[-1] % 3))", "{n} = {a}.new_zeros({a}.shape) + 1",
    "{n} = {a}.view({a}.size()) * math.sqrt({a}.shape[-1])", "{n} = {a} * math.ceil({a}.shape[0] / 2)",
    "{n} = {a} * int({a}.shape[0] * 0.5)", "{n} = {a} * max({a}.shape) - min({a}.shape)", "{n} = {a} * sum({a}.shape)",
    "{n} = {a} * {{3: 0.5, 4: 0.25}}.get({a}.shape[0], 2.0)", "{n} = {a} * [1.0, 2.0, 3.0][{a}.shape[0] % 3]",
    "{n} = {a} * len(str({a}.shape[0]))", "{n} = {a} * (n + {a}.shape[0])", "{n} = {a}.reshape(-1)[:n]",
    "{n} = {a} if {a}.shape == {b}.shape else {a} * 2", "{n} = votive.outer({a}.reshape(-1), votive.arange(n) * 1.0)",
    "{n} = votive.linspace(0, 1, {a}.shape[-1]) * {a}", "{n} = {a}.unflatten(0, (1, {a}.shape[0]))",
    "{n} = votive.einsum('i,j->ij', {a}.reshape(-1), {b}.reshape(-1))", "{n} = votive.rand({a}.shape) * {a}",
    "{n} = {a} + votive.tensor([float({a}.shape[0])])", "{n} = {a} * (x.shape[0] * y.shape[-1] // 3)",
    "{n} = {a}.clone()\n{n}[: {a}.shape[0] // 2] = 0.5", "{n} = {a}.clone()\n{n}[..., {a}.shape[-1] - 1] *= 2",
    "{n} = {a}.clone()\n{n}.narrow(0, 0, {a}.shape[0] - 1).add_(1.0)", "y.mul_(1 + 1 / len(y))\n{n} = y * 2",
    "m = votive.arange({a}.shape[-1])[:, None] >= votive.arange({a}.shape[-1])\n"
    "{n} = votive.where(m, 1.0, 0.5).sum(0) * {a}",
    "{n} = votive.nn.functional.interpolate({a}.reshape(1, 1, -1), size={a}.shape[0] + 2)",
    "{n} = {a}.diagonal()", "{n} = {a}.unfold(0, 2, 1)", "{n} = votive.nn.functional.dropout({a}, 0.5)",
    "{n} = {a}.topk(2, -1).values", "{n} = {a}.sort(0).values",
    "{n} = {a}.index_select(0, votive.arange({a}.shape[0] - 1))",
    "{n} = {a}.gather(-1, votive.zeros({a}.shape, dtype=votive.int64))",
    "{n} = {a}.permute(*range({a}.ndim - 1, -1, -1))",
]  # fmt: skip


class SizedWriter(Writer):
    """Writes programs most of whose statements compute with sizes."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.scope["math"] = __import__("math")
        self.looks_wanted = False

    def statement(self) -> None:
        if self.r.random() < 0.4:
            super().statement()
            return
        name = self.new()
        self.tried(self.r.choice(SIZED).format(a=self.pick(), b=self.pick(), n=name), name)

    def program(self) -> str:
        text = super().program()
        return text.replace("def program(", "import math\n\ndef program(", 1)


class SizedInputs:
    """Arguments whose sizes are those of a program, and further ones."""

    def __init__(self, inputs: Inputs, seed: int) -> None:
        self.inputs = inputs
        r = random.Random(seed)
        base = inputs.dims
        grow = [r.choice([0, 1, 1]) for _ in base]
        if not any(grow):
            grow[r.randrange(len(grow))] = 1
        steps = r.choice([(0, 1, 2, 5, 9), (0, 2, 3, 1, 7), (3, 0, 1, 4, 2), (0, 0, 4, 1, 13)])
        self.dims = [tuple(d + g * k for d, g in zip(base, grow, strict=True)) for k in steps]
        self.numbers = [3 + r.choice([0, 0, k]) for k in range(len(steps))]

    def arguments(self, call: int) -> dict[str, Any]:
        inputs = self.inputs
        old, inputs.dims = inputs.dims, self.dims[call]
        try:
            found = inputs.arguments(0)
        finally:
            inputs.dims = old
        return {**found, "n": self.numbers[call]}


def make(seed: int) -> tuple[str, Callable[[], Any], SizedInputs, Writer]:
    """(text, a maker of new functions of that text, the inputs, how it was written)."""
    writer, old = SizedWriter, random_programs.Writer
    random_programs.Writer = writer  # type: ignore[misc]
    try:
        text, fresh, inputs, written = random_programs.make(seed)
    finally:
        random_programs.Writer = old  # type: ignore[misc]
    return text, fresh, SizedInputs(inputs, seed), written


__all__ = ["make", "votive"]
