"""Programs that save and load and must say the same with votive and with torch."""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import Any

from .module_programs import make
from .transcript import Said

PROGRAMS: list[Any] = []


def program(fn: Any) -> Any:
    PROGRAMS.append(fn)
    return fn


@program
def state_hooks(lib: Any, say: Said) -> None:
    net = make(lib).Net()
    log: list[str] = []
    net.register_state_dict_pre_hook(lambda m, prefix, keep: log.append(f"pre {prefix} {keep}"))
    net.first.register_state_dict_pre_hook(lambda m, prefix, keep: log.append(f"pre {prefix}"))

    def post(m: Any, state: Any, prefix: str, meta: Any) -> None:
        log.append(f"post {prefix} {meta} {len(state)}")
        state[prefix + "note"] = 1

    net.first.register_state_dict_post_hook(post)
    net._register_state_dict_hook(lambda m, s, p, meta: {"only": len(s)})
    say(net.state_dict(keep_vars=True))
    say(log)
    say.attempt("same twice", lambda: net._register_state_dict_hook(post))
    net2 = make(lib).Net()
    net2.register_state_dict_post_hook(lambda m, s, p, meta: 3)
    say.attempt("result", net2.state_dict)


@program
def loading(lib: Any, say: Said) -> None:
    names = make(lib)
    net = names.Net()
    state = net.state_dict()
    say(net.load_state_dict(state))
    short = OrderedDict((k, v) for k, v in state.items() if not k.startswith("blocks.1"))
    short["blocks.1.wait"] = lib.ones(1)
    short["elsewhere.x"] = lib.ones(1)
    say(net.load_state_dict(short, strict=False))
    say.attempt("strict", lambda: net.load_state_dict(short), text=True)
    short["first.weight"] = lib.ones(5, 5)
    say.attempt("shape", lambda: net.load_state_dict(short), text=True)
    say.attempt("shape not strict", lambda: net.load_state_dict(short, strict=False), text=True)
    short["first.weight"] = 3
    say.attempt("type", lambda: net.load_state_dict(short, strict=False))
    say.attempt("no mapping", lambda: net.load_state_dict([1]))
    other = names.Net().double()
    say(other.load_state_dict(state), other.first.weight.dtype)
    given = {k: v.clone() for k, v in state.items()}
    before = other.first.weight
    say(other.load_state_dict(given, assign=True), other.first.weight.dtype)
    say(other.first.weight is before, type(other.first.weight).__name__)
    say(other.first.weight.data_ptr() == given["first.weight"].data_ptr())
    frozen = names.Lin(2, 2).requires_grad_(False)
    frozen.load_state_dict(names.Lin(2, 2).state_dict(keep_vars=True), assign=True)
    say(frozen.weight.requires_grad)
    one = lib.nn.Module()
    one.register_buffer("n", lib.tensor(0))
    say(one.load_state_dict({"n": lib.tensor([7])}), one.n)
    say(one.load_state_dict({"n": lib.tensor(3.7)}), one.n)


@program
def load_hooks(lib: Any, say: Said) -> None:
    net = make(lib).Net()
    log: list[str] = []

    def pre(m: Any, state: Any, prefix: str, meta: Any, strict: Any, *lists: Any) -> None:
        log.append(f"pre {type(m).__name__} {prefix} {meta.get('version')} {strict} {len(state)}")

    def post(m: Any, keys: Any) -> None:
        log.append(f"post {type(m).__name__} {keys}")

    net.first.register_load_state_dict_pre_hook(pre)
    net.norm.register_load_state_dict_pre_hook(pre)
    net._register_load_state_dict_pre_hook(lambda s, p, *r: log.append(f"old {p}"))
    net.register_load_state_dict_post_hook(post)
    net.head.fc.register_load_state_dict_post_hook(post)
    net.load_state_dict(net.state_dict())
    say(log)
    log.clear()
    copy.deepcopy(net).load_state_dict(net.state_dict())
    say(log)
    with net.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear()):
        say(net.load_state_dict({}))
    with net.register_load_state_dict_post_hook(lambda m, keys: 3):
        say.attempt("result", lambda: net.load_state_dict(net.state_dict()))


@program
def extra_state(lib: Any, say: Said) -> None:
    class Extra(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.value = 3
            self.p = lib.nn.Parameter(lib.ones(1))

        def get_extra_state(self) -> Any:
            return {"value": self.value}

        def set_extra_state(self, state: Any) -> None:
            self.value = state["value"]

    m = lib.nn.Sequential(Extra())
    state = m.state_dict()
    say(list(state), state["0._extra_state"])
    m[0].value = 4
    say(m.load_state_dict(state), m[0].value)
    del state["0._extra_state"]
    say.attempt("missing", lambda: m.load_state_dict(state), text=True)
    plain = lib.nn.Sequential(make(lib).Lin(1, 1))
    state = plain.state_dict()
    state["0._extra_state"] = 3
    say.attempt("unexpected", lambda: plain.load_state_dict(state), text=True)


@program
def overridden_saving_and_loading(lib: Any, say: Said) -> None:
    class Renamed(make(lib).Lin):  # type: ignore[misc]
        def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
            super()._save_to_state_dict(destination, prefix, keep_vars)
            destination[prefix + "w"] = destination.pop(prefix + "weight")

        def _load_from_state_dict(self, state: Any, prefix: str, *rest: Any) -> None:
            state[prefix + "weight"] = state.pop(prefix + "w")
            super()._load_from_state_dict(state, prefix, *rest)
            say("seen", self.weight.sum())

    m = lib.nn.Sequential(Renamed(2, 2))
    state = m.state_dict()
    say(list(state))
    state["0.w"] = lib.full((2, 2), 5.0)
    say(m.load_state_dict(state), list(state))
    say(m[0].weight)


def lazy(lib: Any) -> Any:
    class Scale(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = lib.nn.Parameter(lib.ones(3))

        def forward(self, x: Any) -> Any:
            return x * self.w

    class LazyScale(lib.nn.modules.lazy.LazyModuleMixin, Scale):  # type: ignore[misc]
        cls_to_become = Scale

        def __init__(self) -> None:
            super().__init__()
            self.w = lib.nn.UninitializedParameter()

        def initialize_parameters(self, x: Any) -> None:
            if self.has_uninitialized_params():
                self.w.materialize(x.shape[-1:])
                lib.nn.init.constant_(self.w, 2.0)

    return LazyScale


@program
def lazy_modules(lib: Any, say: Said) -> None:
    LazyScale = lazy(lib)
    m = lib.nn.Sequential(LazyScale())
    say(m, m[0].has_uninitialized_params(), m.state_dict())
    say(m.double()(lib.ones(2, 3, dtype=lib.float64)))
    say(m, type(m[0]).__name__, len(m[0]._forward_pre_hooks), m.state_dict())
    fresh = lib.nn.Sequential(LazyScale())
    say(fresh.load_state_dict(m.state_dict()), fresh[0].w, type(fresh[0]).__name__)
    say(fresh(lib.ones(3)), type(fresh[0]).__name__)
    say.attempt("lazy into full", lambda: m.load_state_dict(lib.nn.Sequential(LazyScale()).state_dict()))
    both = lib.nn.Sequential(LazyScale())
    say(both.load_state_dict(lib.nn.Sequential(LazyScale()).state_dict()), both[0].w)
