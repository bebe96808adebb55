"""Optimizer steps: a dispatch per parameter, whose text is the rule of one element. Numbers that depend on the step are
computed on the host, where the counts are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ....core import dtype as dt
from ....core.layout import Layout, Spec
from ...common.slot import Slot
from .. import cpu_fallback
from ..rows import Run, webgpu
from ..runtime.views import View, empty
from ..shaders import types
from ..shaders.layouts import Walk
from ..shaders.program import Program, groups_for
from ..shaders.rows import shared

Values = dict[str, float]

_HEAD = """fn lerp(x: f32, end: f32, weight: f32, rest: f32) -> f32 {
  return select(end - (end - x) * rest, x + (end - x) * weight, weight < 0.5);
}
"""
# The gradient to descend along: negated for ascent, with the weight decay of L2 penalties.
_DESCENT = "g = g * P.sign; if (P.decay != 0.0) { g = g + w * P.decay; }\n"


@dataclass(frozen=True)
class Rule:
    """The update of the element `w` by `g`, with states `s0`, `s1`, ... and numbers in P.

    `numbers(t, *hyperparameters)` gives these; t is the step, where there are `counts`. `present` says from the lists
    of states and the flags which states there are.
    """

    states: int
    text: Callable[[Sequence[bool], Sequence[bool]], str]
    numbers: Callable[..., Values]
    counts: int = 1
    scaling: bool = False
    fresh: bool = False
    present: Callable[[Any, Sequence[bool]], tuple[bool, ...]] | None = None


def _sign(maximize: bool) -> float:
    return -1.0 if maximize else 1.0


def _average(beta: float) -> Values:
    return {"weight": 1 - beta, "rest": 1 - (1 - beta)}


def _decays(lr: float, decay: float, decoupled: bool) -> Values:
    return {"decay": 0.0, "shrink": 1 - lr * decay} if decoupled else {"decay": decay, "shrink": 1.0}


def _sgd(
    fresh: float, lr: float, momentum: float, dampening: float, decay: float, nesterov: bool, maximize: bool
) -> Values:
    return {"rate": -lr, "momentum": momentum, "part": 1 - dampening, "decay": decay, "sign": _sign(maximize),
            "fresh": fresh}  # fmt: skip


def _sgd_text(present: Sequence[bool], flags: Sequence[bool]) -> str:
    if not present[0]:
        return _DESCENT + "w = w + g * P.rate;"
    toward = "g + moved * P.momentum" if flags[0] else "moved"
    return _DESCENT + (
        "let moved = select(s0 * P.momentum + g * P.part, g, P.fresh != 0.0);\n"
        "if (P.momentum != 0.0) { s0 = moved; "
        f"g = {toward}; }}\nw = w + g * P.rate;"
    )


def _adam(
    t: float,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    decay: float,
    amsgrad: bool,
    maximize: bool,
    apart: bool,
) -> Values:
    return {"rate": -lr / (1 - beta1**t), "root": (1 - beta2**t) ** 0.5, "beta2": beta2, "square": 1 - beta2,
            **_average(beta1), "eps": eps, **_decays(lr, decay, apart), "sign": _sign(maximize)}  # fmt: skip


def _adam_text(present: Sequence[bool], flags: Sequence[bool]) -> str:
    under = "s2 = f_maximum(s2, s1); let u = s2;" if flags[0] else "let u = s1;"
    return _DESCENT + (
        "w = w * P.shrink;\ns0 = lerp(s0, g, P.weight, P.rest);\ns1 = s1 * P.beta2 + g * P.square * g;\n"
        f"{under}\nw = w + (s0 * P.rate) / (sqrt(u) / P.root + P.eps);"
    )


def _rmsprop(
    t: float, lr: float, alpha: float, eps: float, decay: float, momentum: float, centered: bool, maximize: bool
) -> Values:
    return {"rate": -lr, "alpha": alpha, **_average(alpha), "eps": eps, "decay": decay, "momentum": momentum,
            "sign": _sign(maximize)}  # fmt: skip


def _rmsprop_text(present: Sequence[bool], flags: Sequence[bool]) -> str:
    text = _DESCENT + "s0 = s0 * P.alpha + g * P.weight * g;\nvar spread = s0;\n"
    if present[1]:
        text += "s1 = lerp(s1, g, P.weight, P.rest); spread = s0 - s1 * s1;\n"
    text += "let u = sqrt(spread) + P.eps;\n"
    return text + ("s2 = s2 * P.momentum + g / u; w = w + s2 * P.rate;" if present[2] else "w = w + g * P.rate / u;")


def _adagrad(t: float, lr: float, lr_decay: float, eps: float, decay: float, maximize: bool) -> Values:
    return {"rate": -lr / (1 + (t - 1) * lr_decay), "eps": eps, "decay": decay, "sign": _sign(maximize)}


def _adadelta(t: float, lr: float, rho: float, eps: float, decay: float, maximize: bool) -> Values:
    return {"rate": -lr, "rho": rho, "rest": 1 - rho, "eps": eps, "decay": decay, "sign": _sign(maximize)}


def _adamax(t: float, lr: float, beta1: float, beta2: float, eps: float, decay: float, maximize: bool) -> Values:
    return {"rate": -lr / (1 - beta1**t), "beta2": beta2, **_average(beta1), "eps": eps, "decay": decay,
            "sign": _sign(maximize)}  # fmt: skip


def _radam(
    t: float, lr: float, beta1: float, beta2: float, eps: float, decay: float, apart: bool, maximize: bool
) -> Values:
    longest, correction = 2 / (1 - beta2) - 1, 1 - beta2**t
    rho = longest - 2 * t * beta2**t / correction
    rectifier = 0.0
    if rho > 5.0:
        rectifier = ((rho - 4) * (rho - 2) * longest / ((longest - 4) * (longest - 2) * rho)) ** 0.5
    return {"lr": lr, "correction": 1 - beta1**t, "root": correction**0.5, "rectifier": rectifier, "beta2": beta2,
            "square": 1 - beta2, **_average(beta1), "eps": eps, **_decays(lr, decay, apart),
            "sign": _sign(maximize)}  # fmt: skip


def _lion(lr: float, beta1: float, beta2: float, decay: float, maximize: bool) -> Values:
    return {"rate": -lr, "beta1": beta1, "ahead": 1 - beta1, **_average(beta2), "shrink": 1 - lr * decay,
            "sign": _sign(maximize)}  # fmt: skip


RULES = {
    "_sgd_step": Rule(1, _sgd_text, _sgd, 0, True, True, lambda states, flags: (bool(states[0]),)),
    "_adam_step": Rule(3, _adam_text, _adam, 1, True, present=lambda states, flags: (True, True, flags[0])),
    "_rmsprop_step": Rule(3, _rmsprop_text, _rmsprop, present=lambda s, flags: (True, flags[0], bool(s[2]))),
    "_adagrad_step": Rule(
        1, lambda p, f: _DESCENT + "s0 = s0 + g * g;\nw = w + g * P.rate / (sqrt(s0) + P.eps);", _adagrad, scaling=True
    ),
    "_adadelta_step": Rule(
        2,
        lambda p, f: (
            _DESCENT + "s0 = s0 * P.rho + g * P.rest * g;\nlet d = sqrt(s1 + P.eps) / sqrt(s0 + P.eps) * g;\n"
            "s1 = s1 * P.rho + d * P.rest * d;\nw = w + d * P.rate;"
        ),
        _adadelta,
    ),
    "_adamax_step": Rule(
        2,
        lambda p, f: (
            _DESCENT + "s0 = lerp(s0, g, P.weight, P.rest);\ns1 = f_maximum(s1 * P.beta2, f_abs(g) + P.eps);\n"
            "w = w + s0 * P.rate / s1;"
        ),
        _adamax,
    ),
    "_radam_step": Rule(
        2,
        lambda p, f: (
            _DESCENT + "w = w * P.shrink;\ns0 = lerp(s0, g, P.weight, P.rest);\ns1 = s1 * P.beta2 + g * P.square * g;\n"
            "let u = s0 / P.correction * P.lr;\n"
            "w = w - select(u, u * (P.root / (sqrt(s1) + P.eps)) * P.rectifier, P.rectifier != 0.0);"
        ),
        _radam,
    ),
    "_lion_step": Rule(
        1,
        lambda p, f: (
            "g = g * P.sign;\nw = w * P.shrink + f_sign(s0 * P.beta1 + g * P.ahead) * P.rate;\n"
            "s0 = lerp(s0, g, P.weight, P.rest);"
        ),
        _lion,
        0,
    ),
    "_average_step": Rule(
        0, lambda p, f: "w = lerp(w, g, P.weight, P.rest);", lambda w: {"weight": w, "rest": 1 - w}, 0
    ),
}


class _Step:
    """The kernels of a rule for parameters of one plan."""

    def __init__(self, op: str, rule: Rule, present: tuple[bool, ...], flags: Sequence[bool]) -> None:
        self.op, self.rule, self.present, self.flags = op, rule, present, flags
        self.made: dict[Any, tuple[Program, Walk]] = {}

    def __call__(self, views: list[View], numbers: Values) -> None:
        """views: the parameter, its gradient and the states that are there."""
        n = views[0].spec.numel
        if not n:
            return
        key = tuple(v.spec for v in views)
        if key not in self.made:
            names = ["w", "g", *[f"s{k}" for k, here in enumerate(self.present) if here]]
            walk = Walk("k", key[0].shape, [s.strides for s in key])
            lines = [f"  if (index >= P.n) {{ return; }}\n{walk.lines('index')}"]
            lines += [f"  var {name} = {name}_at(k{k});" for k, name in enumerate(names)]
            lines.append(self.rule.text(self.present, self.flags))
            lines += [f"  {name}_set(k{k}, {name});" for k, name in enumerate(names) if name != "g"]
            operands = [(name, s.dtype, "r" if name == "g" else "w") for name, s in zip(names, key, strict=True)]
            fields = [("n", "I"), *[(name, "f") for name in numbers], *walk.numbers]
            self.made[key] = Program(self.op, operands, fields, "\n".join(lines), head=_HEAD), walk
        program, walk = self.made[key]
        program(groups_for(n), views, n, *numbers.values(), *walk.values)


def _register(op: str, rule: Rule) -> None:
    tensors = 2 + rule.states

    @webgpu(op)
    def arrange(*args: Any) -> Run:
        lists, rest = args[:tensors], args[tensors:]
        scaling = rest[-2:] if rule.scaling else ()
        if any(s is not None for s in scaling):
            return None
        flags = [a for a in rest if isinstance(a, bool)]
        present = rule.present(lists[2:], flags) if rule.present else (True,) * rule.states
        used = [lists[0], lists[1], *[x for x, here in zip(lists[2:], present, strict=True) if here]]
        if any(s.dtype not in types.FLOATS for x in used for s in x):
            return None
        fresh = rest[0] if rule.fresh else None
        step = _Step(op, rule, present, flags)

        def run(outs: list[View], *values: Any) -> None:
            if rule.scaling:
                values = values[:-2]
            lists, kept, hyper = values[:tensors], values[tensors:][: rule.counts], values[tensors + rule.counts :]
            states = [x for x, here in zip(lists[2:], present, strict=True) if here]
            for k, (w, g) in enumerate(zip(lists[0], lists[1], strict=True)):
                first: list[float] = []
                for count in kept:
                    first.append(_counted(count[k]))
                if fresh is not None:
                    first = [float(fresh[k]) if fresh else 0.0]
                numbers = rule.numbers(*first, *[float(h) for h in hyper], *flags)
                step([w, g, *[s[k] for s in states]], numbers)

        return run


def _counted(count: Any) -> float:
    """The number of the step that is made, counted where it is kept."""
    if count.__class__ is not View:
        count += 1
        return float(count)
    now = cpu_fallback.fetch(count) + 1
    cpu_fallback.store(now, count)
    return float(now)


for _op, _rule in RULES.items():
    _register(_op, _rule)


@webgpu("_scale_")
def scale(tensors: tuple[Slot, ...], factor: Slot) -> Run:
    if any(t.dtype not in types.FLOATS for t in tensors) or factor.dtype not in types.FLOATS:
        return None
    made: dict[Any, tuple[Program, Walk]] = {}

    def run(outs: list[View], tensors: list[View], factor: View) -> None:
        for v in tensors:
            spec = v.spec
            if not spec.numel:
                continue
            if spec not in made:
                walk = Walk("k", spec.shape, [spec.strides])
                body = f"  if (index < P.n) {{\n{walk.lines('index')}    x_set(k0, x_at(k0) * f_at(0u));\n  }}"
                operands = [("x", spec.dtype, "w"), ("f", factor.spec.dtype, "r")]
                made[spec] = Program("scale", operands, [("n", "I"), *walk.numbers], body), walk
            program, walk = made[spec]
            program(groups_for(spec.numel), [v, factor], spec.numel, *walk.values)

    return run


@webgpu("_total_norm")
def total_norm(tensors: tuple[Slot, ...], ord: float) -> Run:
    if ord != 2 or any(t.dtype not in types.FLOATS for t in tensors) or not tensors:
        return None
    made: dict[Any, tuple[Program, Walk]] = {}
    body = "  var t = 0.0;\n  for (var j = lane; j < P.n; j += 256u) { t += x_at(j); }\n  t = all_sum(lane, t);\n"
    body += "  if (lane == 0u) { y_set(0u, sqrt(t)); }"
    roots: dict[dt.dtype, Program] = {}

    def run(outs: list[View], tensors: list[View]) -> None:
        parts = empty(Spec(Layout((len(tensors),)), dt.float32, outs[0].spec.device))
        for k, v in enumerate(tensors):
            spec = v.spec
            if spec not in made:
                walk = Walk("k", spec.shape, [spec.strides])
                text = "  var t = 0.0;\n  for (var j = lane; j < P.n; j += 256u) {\n"
                text += f"{walk.lines('j')}    let v = x_at(k0); t += v * v;\n  }}\n  t = all_sum(lane, t);\n"
                text += "  if (lane == 0u) { y_set(0u, t); }"
                operands = [("y", dt.float32, "w"), ("x", spec.dtype, "r")]
                fields = [("n", "I"), *walk.numbers]
                made[spec] = Program("square_sum", operands, fields, text, group=256, head=shared(256)), walk
            program, walk = made[spec]
            program(1, [View(parts.storage, k, parts.spec), v], spec.numel, *walk.values)
        kind = outs[0].spec.dtype
        if kind not in roots:
            operands = [("y", kind, "w"), ("x", dt.float32, "r")]
            roots[kind] = Program("total_norm", operands, [("n", "I")], body, group=256, head=shared(256))
        roots[kind](1, [outs[0], parts], len(tensors))

    return run
