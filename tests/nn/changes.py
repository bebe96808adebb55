"""All the ways to change a module: whoever computes its result without calling it must see them.

A way takes (block, stack): a layer of a Llama with norms on queries and keys, and what undoes the
way at the end. `CHANGES` are those that change numbers, `LOOKS` those that only look.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from votive import nn
from votive.dispatch import Observer
from votive.nn import functional as F
from votive.nn.utils import parametrizations, parametrize

Way = Callable[[Any, ExitStack], Any]


def _set(stack: ExitStack, thing: Any, name: str, value: Any) -> None:
    """Set an attribute until the end, also of a class."""
    own = name in vars(thing)
    before = vars(thing).get(name)
    setattr(thing, name, value)
    stack.callback(setattr, thing, name, before) if own else stack.callback(delattr, thing, name)


def _louder(forward: Any) -> Any:
    return lambda *args, **kwargs: 1.5 * forward(*args, **kwargs)


def _captured(block: Any, stack: ExitStack) -> None:
    pytest.importorskip("greenlet", reason="the glass engine needs greenlet")
    from votive import glass

    stack.enter_context(glass.capture(block, "mlp"))


class _LouderLinear(nn.Linear):
    def forward(self, input: Any) -> Any:
        return 1.5 * super().forward(input)


class _LouderCall(nn.Linear):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return 1.5 * super().__call__(*args, **kwargs)


class _LouderNorm(nn.RMSNorm):
    def forward(self, x: Any) -> Any:
        return 1.5 * super().forward(x)


class _Twice(nn.Module):
    def forward(self, x: Any) -> Any:
        return 2 * x


def _as(module: Any, cls: type) -> None:
    module.__class__ = cls


def _parameter_gone(module: Any, value: Any) -> None:
    """The weight as a plain tensor, not registered."""
    del module.weight
    module.weight = value


def _weight(module: Any, factor: float = 1.5) -> Any:
    return module.weight.detach() * factor


def _own(pick: Callable[[Any], Any]) -> Way:
    return lambda block, stack: setattr(pick(block), "forward", _louder(pick(block).forward))


def _on_class(cls: type, name: str = "forward") -> Way:
    def change(block: Any, stack: ExitStack) -> None:
        before = getattr(cls, name)
        _set(stack, cls, name, lambda self, *a, **k: 1.5 * before(self, *a, **k))

    return change


def _hook(pick: Callable[[Any], Any]) -> Way:
    return lambda b, stack: stack.enter_context(pick(b).register_forward_hook(lambda m, args, y: 1.5 * y))


def _lora(block: Any, stack: ExitStack) -> None:
    nn.apply_lora(block, "down_proj", r=2)
    nn.init.ones_(block.mlp.down_proj.lora_B)


def _global(block: Any, stack: ExitStack) -> None:
    stack.enter_context(
        nn.modules.module.register_module_forward_hook(lambda m, args, y: 1.5 * y if m is block.mlp.up_proj else None)
    )


CHANGES: dict[str, Way] = {
    # Hooks.
    "a forward hook on a product": _hook(lambda b: b.mlp.gate_proj),
    "a forward hook on a norm": _hook(lambda b: b.input_layernorm),
    "a forward hook on the net": _hook(lambda b: b.mlp),
    "a forward hook on the layer": _hook(lambda b: b),
    "a forward pre-hook": lambda b, stack: stack.enter_context(
        b.mlp.down_proj.register_forward_pre_hook(lambda m, args: 1.5 * args[0])
    ),
    "a hook on all modules": _global,
    # A method of the instance's own.
    "an own forward of a product": _own(lambda b: b.mlp.gate_proj),
    "an own forward of a product that is added": _own(lambda b: b.mlp.down_proj),
    "an own forward of a norm": _own(lambda b: b.post_attention_layernorm),
    "an own forward of a head's norm": _own(lambda b: b.self_attn.q_norm),
    "an own forward of the net": _own(lambda b: b.mlp),
    "an own forward of attention": _own(lambda b: b.self_attn),
    "an own forward of the layer": _own(lambda b: b),
    "an own helper of attention": lambda b, stack: setattr(b.self_attn, "look", _louder(b.self_attn.look)),
    # A method of the class.
    "forward of Linear replaced": _on_class(nn.Linear),
    "forward of RMSNorm replaced": _on_class(nn.RMSNorm),
    "forward of the layer's class replaced": lambda b, s: _on_class(type(b))(b, s),
    "forward of the net's class replaced": lambda b, s: _on_class(type(b.mlp))(b, s),
    "a helper of attention's class replaced": lambda b, s: _on_class(type(b.self_attn), "look")(b, s),
    "__call__ of Linear replaced": _on_class(nn.Linear, "__call__"),
    # Another class.
    "a subclass of Linear": lambda b, stack: _as(b.mlp.up_proj, _LouderLinear),
    "a subclass with a __call__": lambda b, stack: _as(b.mlp.up_proj, _LouderCall),
    "a subclass of RMSNorm": lambda b, stack: _as(b.input_layernorm, _LouderNorm),
    "a replaced child": lambda b, stack: setattr(b.mlp, "gate_proj", nn.Sequential(b.mlp.gate_proj, _Twice())),
    "a replaced norm": lambda b, stack: setattr(
        b, "input_layernorm", nn.LayerNorm(16, device=b.mlp.up_proj.weight.device)
    ),
    "a replaced net": lambda b, stack: setattr(b, "mlp", _Twice()),
    "LoRA": _lora,
    # Parametrizations.
    "a parametrized product": lambda b, stack: parametrize.register_parametrization(
        b.mlp.gate_proj, "weight", _Twice()
    ),
    "a parametrized norm": lambda b, stack: parametrize.register_parametrization(
        b.post_attention_layernorm, "weight", _Twice()
    ),
    "weight_norm with another length": lambda b, stack: nn.init.ones_(
        parametrizations.weight_norm(b.mlp.up_proj).parametrizations.weight.original0
    ),
    # Other weights.
    "another parameter": lambda b, stack: setattr(b.mlp.up_proj, "weight", nn.Parameter(_weight(b.mlp.up_proj))),
    "other data": lambda b, stack: setattr(b.mlp.up_proj.weight, "data", _weight(b.mlp.up_proj)),
    "weights written in place": lambda b, stack: b.mlp.up_proj.weight.data.mul_(1.5),
    "a plain tensor as a weight": lambda b, stack: _parameter_gone(b.mlp.up_proj, _weight(b.mlp.up_proj)),
    "a plain tensor as a norm's weight": lambda b, stack: _parameter_gone(
        b.post_attention_layernorm, _weight(b.post_attention_layernorm)
    ),
    "tied weights": lambda b, stack: setattr(b.mlp.up_proj, "weight", b.mlp.gate_proj.weight),
    "weights of another layout": lambda b, stack: setattr(
        b.mlp.up_proj, "weight", nn.Parameter(_weight(b.mlp.up_proj).t().contiguous().t())
    ),
    "a bias": lambda b, stack: setattr(b.mlp.gate_proj, "bias", nn.Parameter(_weight(b.mlp.gate_proj)[:, 0])),
    "a norm without weight": lambda b, stack: setattr(b.post_attention_layernorm, "weight", None),
    # Other numbers.
    "another eps": lambda b, stack: setattr(b.input_layernorm, "eps", 0.5),
    "no eps": lambda b, stack: setattr(b.input_layernorm, "eps", None),
    "another eps for keys only": lambda b, stack: setattr(b.self_attn.k_norm, "eps", 0.5),
    "no norm of queries": lambda b, stack: setattr(b.self_attn, "qk_norm", ""),
    "another scale": lambda b, stack: setattr(b.self_attn, "scale", 1.0),
    "a window": lambda b, stack: setattr(b.self_attn, "window", 2),
    "another activation": lambda b, stack: setattr(b.mlp, "act_fn", F.relu),
    "an own activation": lambda b, stack: setattr(b.mlp, "act_fn", lambda x: x.sin()),
}


class _Names(Observer):
    def before(self, call: Any) -> None:
        return None


LOOKS: dict[str, Way] = {
    "nothing": lambda b, stack: None,
    "a hook that looks": lambda b, stack: stack.enter_context(
        b.mlp.gate_proj.register_forward_hook(lambda m, args, y: None)
    ),
    "a full backward hook": lambda b, stack: stack.enter_context(
        b.mlp.gate_proj.register_full_backward_hook(lambda m, gi, go: None)
    ),
    "a backward pre-hook": lambda b, stack: stack.enter_context(
        b.mlp.gate_proj.register_full_backward_pre_hook(lambda m, go: None)
    ),
    "a backward hook on all modules": lambda b, stack: stack.enter_context(
        nn.modules.module.register_module_full_backward_hook(lambda m, gi, go: None)
    ),
    "an observer": lambda b, stack: stack.enter_context(_Names()),
    "glass.capture": _captured,
    "frozen parameters": lambda b, stack: b.mlp.gate_proj.requires_grad_(False),
    "training": lambda b, stack: b.train(),
    "a subclass that inherits all": lambda b, stack: _as(b.mlp.up_proj, type("Same", (nn.Linear,), {})),
}
