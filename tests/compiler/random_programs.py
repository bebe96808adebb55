"""Random programs as Python text: views, writes in place, branches on sizes, loops, casts, reductions, random numbers,
several outputs, aliases and values that Python looks at. Knows nothing of the compiler.
"""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

import votive

HEAD = """
SCALE = 1.5
TABLE = {"k": 0.25, "names": ["a", "b"]}

def helper(t, by=2.0):
    if t.ndim > 1:
        t = t.transpose(0, -1)
    return votive.tanh(t) * by

def many(t, *rest, **named):
    out = t * SCALE
    for r in rest:
        out = out + r
    return out * named.get("factor", 1.0)

class Box:
    def __init__(self, value):
        self.value = value
        self.parts = [value, value * 2]

    def total(self):
        return sum(p.sum() for p in self.parts) + self.value.mean()
"""

UNARY = [
    "sin",
    "cos",
    "tanh",
    "sigmoid",
    "abs",
    "exp(-{}.abs())",
    "sqrt({}.abs() + 1)",
    "relu",
    "neg",
    "log1p({}.abs())",
]
BINARY = ["{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / ({b}.abs() + 1)", "votive.maximum({a}, {b})"]
BINARY += ["votive.where({a} > {b}, {a}, {b} * 2)", "votive.lerp({a}, {b}, 0.3)", "{a}.atan2({b})"]
# Written as one would; those that do not fit the shapes at hand are tried and dropped.
VIEWS = [
    "{a}.transpose(0, -1)", "{a}.reshape(-1)", "{a}[0]", "{a}[-1:]", "{a}[..., None]", "{a}[:, 1:]", "{a}[None]",
    "{a}.unsqueeze(0)", "{a}.squeeze()", "{a}.flatten()", "{a}.chunk(2)[-1]", "{a}.narrow(0, 0, 1)", "{a}[::2]",
    "{a}.expand(2, *{a}.shape)", "{a}.view({a}.shape)", "{a}.movedim(0, -1)", "{a}.diagonal()", "{a}.unbind(0)[0]",
    "{a}.split(2)[0]", "{a}.T if {a}.ndim == 2 else {a}", "{a}.swapaxes(0, -1)", "{a}.view(-1)", "{a}.permute(1, 0)",
    "{a}.select(0, 0)", "{a}.detach()", "{a}.view_as({a})",
]  # fmt: skip
REDUCTIONS = [
    "{a}.sum()", "{a}.mean(-1)", "{a}.amax(0)", "{a}.softmax(-1)", "{a}.cumsum(0)", "{a}.std()",
    "{a}.sum(0, keepdim=True)",
    "{a}.logsumexp(-1)", "{a}.norm()", "{a}.max(-1).values", "{a}.var(0, unbiased=False)", "{a}.prod(0)", "{a}.min()",
    "{a}.sort(-1)[0]", "{a}.log_softmax(0)", "{a}.topk(1)[0]", "{a}.flip(0)", "{a}.roll(1, 0)", "{a}.tril()",
]  # fmt: skip
MIXED = [
    "{a}.clone()", "{a}.contiguous()", "votive.cat([{a}, {a}])", "votive.stack([{a}, {a} * 2], 0)", "{a}.float()",
    "{a}.double().sin().float()", "({a} > 0).float()", "{a}.clamp(-1, 1)", "{a} * n", "{a} ** 2", "{a} * SCALE",
    "{a} * TABLE['k']", "helper({a})", "helper({a}, by=n)", "many({a}, {a}, 1.0, factor=0.5)", "{a} @ {a}.T",
    "{a} if flag else -{a}", "votive.zeros_like({a}) + 1", "{a} + votive.arange({a}.shape[-1])", "Box({a}).total()",
    "sum([p.sum() for p in {a}.unbind(0)])", "{a}.new_zeros(3) + {a}.sum()", "{a} * votive.tensor([2.0])",
    "votive.ones({a}.shape) * {a}", "{a} + {a}.shape[0]", "(lambda t: t * n)({a})",
    "max([{a}, -{a}], key=lambda t: t.ndim)",
    "{a}.to(votive.float64).sum().float()", "{a}.masked_fill({a} > 0.5, 0.0)", "votive.nn.functional.gelu({a})",
    "votive.nn.functional.layer_norm({a}, {a}.shape[-1:])", "votive.einsum('...i,...i->...', {a}, {a})",
    "{a}.gather(0, {a}.argsort(0))",
    "{a}.index_select(0, votive.tensor([0]))", "{a}[{a}.argmax(0) * 0]", "{a}.float() * {a}.numel()",
    "weights['w'] * {a}.sum()",
    "{a}.clone().fill_diagonal_(0.0)", "dict(u={a})['u'] + 1", "[{a}, {a} * 2][-1]",
    "{a}.new_tensor([1.0, 2.0]).sum() * {a}",
]  # fmt: skip
HALF = [
    "{a}.half().float()",
    "({a}.bfloat16() * 2).float()",
    "{a}.half().sum().float()",
    "{a}.bfloat16().relu().float()",
]
RANDOM = [
    "{a} + votive.rand_like({a})", "votive.nn.functional.dropout({a}, 0.4, training=True)",
    "{a} * votive.randn({a}.shape)",
    "{a} + votive.rand({a}.shape[-1])", "{a} * votive.bernoulli(votive.full({a}.shape, 0.5))",
    "{a} + votive.randint(0, 5, {a}.shape)", "votive.nn.functional.dropout({a}, 0.0)",
    "{a}[votive.randperm({a}.shape[0])]",
    "{a} + votive.empty_like({a}.detach()).normal_()", "{a} + votive.empty({a}.shape).uniform_(0, 2)",
]  # fmt: skip
WRITES = [
    "{a}.add_({b})", "{a}.mul_(0.5)", "{a} += {b}", "{a} *= 1.25", "{a}[0] = 0.5", "{a}[0] = {b}.mean()",
    "{a}[:, 1:] += 1",
    "{a}.clamp_(-0.5, 0.5)", "{a}.zero_()", "{a}.copy_({b})", "{a}.masked_fill_({a} > 0, 0.1)", "{a}.sin_()",
    "{a}[..., 0].mul_(3)", "{a}.transpose(0, -1).add_(1)", "{a}[{a} > 0] = 0.0", "{a}.fill_(n)", "{a} -= {b}.sum()",
    "{a}.addcmul_({b}, {b})", "{a}.view(-1)[0] = 7.0", "votive.add({a}, 1, out={a})",
    "{a}.index_fill_(0, votive.tensor([0]), 2.0)",
    "{a}.uniform_()", "{a}.exponential_()", "{a}.relu_()", "{a}.detach().mul_(2)", "{a}.lerp_({b}, 0.5)",
]  # fmt: skip
LOOKS = [
    "if {a}.sum() > 0:\n    {n} = {a} + 1\nelse:\n    {n} = {a} - 1", "{n} = {a} * {a}.mean().item()",
    "{n} = {a} * int(({a} > 0).sum())", "{n} = {a}[{a} > -9]", "log.append(float({a}.sum()))",
    "{n} = {a} * len({a}.tolist())",
    "{n} = votive.nonzero({a}).float().sum() + {a}", "seen.append(len(seen)); {n} = {a} * len(seen)",
    "{n} = {a} * 1.0\nwhile {n}.abs().max() > 1.5:\n    {n} = {n} * 0.5", "print({a}.shape, file=sink)",
    "{n} = votive.tensor({a}.detach().numpy()) + {a}",
    "for q in range(3):\n    {n} = {a} * q\n    if {n}.sum() > 2:\n        break",
    "for q in range(2):\n    {a} = {a} * 0.5 + q\n    if {a}.mean() > 1:\n        continue\n    {n} = {a} + q\n"
    "else:\n    {n} = {a} - 1",
    "if {a}.mean() > 0:\n    return {a} * 3",
    "with votive.no_grad():\n    {n} = {a} * 2\n    log.append({n}.sum().item())\n    {n} = {n} + 1",
    "try:\n    {n} = {a} + votive.ones(97, 89)\nexcept RuntimeError as e:\n    {n} = {a} * len(str(e))",
]  # fmt: skip


class Writer:
    """Writes one program; each statement is tried on real tensors, so that most programs run to their end."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.seed = seed
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {"votive": votive}
        exec(HEAD, self.scope)
        self.inputs = Inputs(seed)
        self.scope.update(self.inputs.arguments(0))
        self.grad = self.inputs.grad
        self.names = ["x", "y", "w"]
        self.count = 0
        self.halves: list[str] = []
        self.looks = False

    def new(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def pick(self) -> str:
        return self.r.choice(self.names[-5:] if self.r.random() < 0.7 else self.names)

    def tried(self, text: str, made: str | None = None, depth: int = 0) -> bool:
        """Whether a statement runs; it is kept if so."""
        before = dict(self.scope)
        try:
            exec(text.replace("return ", "_ = "), self.scope)
            if made is not None:
                t = self.scope[made]
                if not isinstance(t, votive.Tensor) or not t.is_floating_point() or t.numel() > 4000 or t.ndim > 4:
                    raise TypeError
                if t.numel() and not bool((t.detach().abs() < 1e4).all()):
                    raise ValueError
        except Exception:
            self.scope.clear()
            self.scope.update(before)
            return False
        if made is not None and made not in self.names:
            self.names.append(made)
        self.lines += text.split("\n")
        return True

    def expression(self) -> str:
        kind = self.r.random()
        a, b = self.pick(), self.pick()
        if kind < 0.2:
            f = self.r.choice(UNARY)
            return f"votive.{f.format(a)}" if "{" in f else f"votive.{f}({a})"
        table = BINARY if kind < 0.4 else VIEWS if kind < 0.6 else REDUCTIONS if kind < 0.7 else MIXED
        if kind > 0.88:
            table = RANDOM
        return self.r.choice(table).format(a=a, b=b)

    def statement(self) -> None:
        kind, name = self.r.random(), self.new()
        a, b = self.pick(), self.pick()
        if kind < 0.02:
            # Nobody reads it again: a comparison might see that compiled programs round less often.
            if self.tried(f"{name} = {self.r.choice(HALF).format(a=a)}", name):
                self.halves.append(self.names.pop())
        elif kind < 0.55:
            self.tried(f"{name} = {self.expression()}", name)
        elif kind < 0.75:
            # Writing over what needs a gradient is allowed on a copy only.
            if self.r.random() < 0.5 and self.tried(f"{name} = {a}.clone()", name):
                a = name
            self.tried(self.r.choice(WRITES).format(a=a, b=b))
        elif kind < 0.8:
            one, other = self.expression(), self.expression()
            test = self.r.choice(["{a}.shape[0] > 2", "flag", "n > 2", "{a}.ndim > 1", "{a}.requires_grad", "{a} is x"])
            self.tried(f"if {test.format(a=a)}:\n    {name} = {one}\nelse:\n    {name} = {other}", name)
        elif kind < 0.85:
            self.tried(f"{name} = {a}\nfor i in range({a}.shape[0]):\n    {name} = {name} * 0.5 + i", name)
        elif kind < 0.88:
            self.tried(
                f"parts = []\nfor p in ({a}, {b}):\n    parts.append(p.sum())\n{name} = votive.stack(parts)", name
            )
        elif kind < 0.91:
            self.tried(f"with votive.no_grad():\n    {name} = {self.expression()}", name)
        elif kind < 0.93:
            self.tried(f"{name}, u{name} = {a}.chunk(2)\n{name} = {name} * 2 + u{name}", name)
        elif self.looks_wanted:
            text = self.r.choice(LOOKS).format(a=a, n=name)
            if self.tried(text, name if f"{name} =" in text else None):
                self.looks = True

    def program(self) -> str:
        self.looks_wanted = self.r.random() < 0.5
        for _ in range(self.r.randint(3, 14)):
            self.statement()
        outs = [self.r.choice(self.names) for _ in range(self.r.randint(1, 3))] + [self.names[-1], *self.halves]
        if self.r.random() < 0.3:
            outs.append(self.r.choice(VIEWS).format(a=self.r.choice(outs[:2])))
            if not self.tried(f"_ = {outs[-1]}", None):
                outs.pop()
            else:
                self.lines.pop()
        form = self.r.choice(["({},)", "[{}]", "{{'a': ({},)}}", "({}, n, None)"])
        body = "\n".join("    " + line for line in self.lines)
        found = form.format(", ".join(outs))
        return f"def program(x, y, w, n, flag, weights, log, seen, sink):\n{body}\n    return {found}\n"


class Inputs:
    """The arguments of a program's calls: the same for the same call."""

    def __init__(self, seed: int) -> None:
        r = random.Random(seed * 7919 + 1)
        self.seed = seed
        self.grad = r.random() < 0.6
        self.alias = r.choice(["", "", "", "same", "view", "rows"])
        self.dims = r.choice([(3, 4), (4, 4), (2, 3, 4), (5,), (1, 6), (4, 1)])

    def arguments(self, call: int) -> dict[str, Any]:
        """Call 0 and 1 have the same shapes and other values, call 2 other shapes, call 3 other numbers."""
        votive.manual_seed(self.seed * 31 + call)
        dims = tuple(d + 1 if d > 2 else d for d in self.dims) if call == 2 else self.dims
        x = votive.randn(*dims)
        y = {"same": lambda: x, "view": lambda: x.transpose(0, -1), "rows": lambda: x[:1]}.get(
            self.alias, lambda: votive.randn(*dims)
        )()
        w = votive.randn(dims[-1])
        if self.grad:
            w.requires_grad_()
            if not self.alias:
                y.requires_grad_()
        n = 3 if call != 3 else 2
        weights = {"w": votive.randn(2)}
        found = {"x": x, "y": y, "w": w, "n": n, "flag": call != 3, "weights": weights}
        return {**found, "log": [], "seen": [], "sink": Sink()}


class Sink:
    """Keeps what is printed."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text


def make(seed: int) -> tuple[str, Callable[[], Any], Inputs, Writer]:
    """(text, a maker of new functions of that text, the inputs, how it was written)."""
    return made_of(Writer(seed), HEAD, f"<program {seed}>")


def made_of(writer: Writer, head: str, file: str) -> tuple[str, Callable[[], Any], Inputs, Writer]:
    """What `make` gives, of a program that begins with `head`."""
    text = head + "\n" + writer.program()
    linecache.cache[file] = len(text), None, text.splitlines(True), file

    def fresh() -> Any:
        scope: dict[str, Any] = {"votive": votive, "__name__": "program"}
        exec(compile(text, file, "exec"), scope)
        return scope["program"]

    return text, fresh, writer.inputs, writer
