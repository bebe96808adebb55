"""Programs with hooks that must say the same with votive and with torch."""

from __future__ import annotations

from typing import Any

from .module_programs import make
from .transcript import Said

PROGRAMS: list[Any] = []


def program(fn: Any) -> Any:
    PROGRAMS.append(fn)
    return fn


@program
def hooks_in_order(lib: Any, say: Said) -> None:
    m = make(lib).Lin(2, 2)
    x = lib.ones(1, 2)
    log: list[str] = []

    def hook(name: str) -> Any:
        return lambda *a: log.append(f"{name}{len(a)}")

    m.register_forward_pre_hook(hook("pre1"))
    m.register_forward_pre_hook(hook("pre2"), with_kwargs=True)
    m.register_forward_pre_hook(hook("pre0"), prepend=True)
    m.register_forward_hook(hook("post1"))
    last = m.register_forward_hook(hook("post2"), with_kwargs=True, always_call=True)
    m.register_forward_hook(hook("post0"), prepend=True)
    m(x)
    say(log)
    log.clear()
    last.remove()
    last.remove()
    say(len(m._forward_hooks), len(m._forward_hooks_with_kwargs))
    m(x=x)
    say(log)
    with m.register_forward_hook(lambda m, a, y: y * 0):
        say(m(x))
    say(m(x))
    with m.register_forward_pre_hook(lambda m, a: (a[0] * 2,)):
        say(m(x))
    with m.register_forward_pre_hook(lambda m, a: a[0] * 3):
        say(m(x))
    with m.register_forward_pre_hook(lambda m, a, k: (a, {"x": x * 4}), with_kwargs=True):
        say(m())
    with m.register_forward_pre_hook(lambda m, a, k: 3, with_kwargs=True):
        say.attempt("wrong result", lambda: m(x))


@program
def hooks_after_errors(lib: Any, say: Said) -> None:
    m = make(lib).Lin(2, 2)
    log: list[str] = []
    m.register_forward_hook(lambda *a: log.append("always"), always_call=True)
    m.register_forward_hook(lambda *a: log.append("not"))

    def broken(*a: Any) -> None:
        log.append("broken")
        raise ValueError

    m.register_forward_hook(broken, always_call=True)
    say.attempt("error", lambda: m(lib.ones(1, 3)))
    say(log)
    log.clear()
    say.attempt("error in a hook", lambda: m(lib.ones(1, 2)))
    say(log)


@program
def backward_hooks(lib: Any, say: Said) -> None:
    class Two(lib.nn.Module):
        def forward(self, a: Any, b: Any, n: int) -> Any:
            return a * b, a * n, n

    m = Two()
    a, b = lib.ones(2, requires_grad=True), lib.full((2,), 3.0, requires_grad=True)
    log: list[str] = []
    m.register_full_backward_hook(lambda m, gi, go: log.append(f"hook {gi} {go}"))
    m.register_full_backward_pre_hook(lambda m, go: log.append(f"pre {go}"))
    y, z, _ = m(a, b, 5)
    (y * 2 + z).sum().backward()
    say(log)
    say(a.grad, b.grad)
    log.clear()
    y, z, _ = m(a, b, 5)
    y.sum().backward()
    say(log)
    log.clear()
    y, z, _ = m(a.detach(), b, 5)
    z = z
    y.sum().backward()
    say(log)
    log.clear()
    y, _, _ = m(lib.ones(2), b.detach(), 5)
    say(y.requires_grad, log)
    with lib.no_grad():
        m(a, b, 5)
    say(log)


@program
def backward_hooks_replace(lib: Any, say: Said) -> None:
    m = make(lib).Lin(2, 2)
    x = lib.ones(1, 2, requires_grad=True)
    with m.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10,)):
        m(x).sum().backward()
    say(x.grad)
    x.grad = None
    with m.register_full_backward_pre_hook(lambda m, go: (go[0] * 10,)):
        m(x).sum().backward()
    say(x.grad, m.weight.grad)
    x.grad = None
    log: list[str] = []
    m.register_full_backward_hook(lambda m, gi, go: log.append("a"))
    m.register_full_backward_hook(lambda m, gi, go: log.append("b"), prepend=True)
    m.register_full_backward_pre_hook(lambda m, go: log.append("c"))
    m.register_full_backward_pre_hook(lambda m, go: log.append("d"), prepend=True)
    m(x).sum().backward()
    say(log)
    say.attempt("mixture", lambda: m.register_backward_hook(lambda *a: None))
    with m.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0])):
        say.attempt("number", lambda: m(x).sum().backward())
    with m.register_full_backward_hook(lambda m, gi, go: log.append("no input")):
        m(x.detach()).sum().backward()
    say(log)


@program
def backward_hooks_and_second_order(lib: Any, say: Said) -> None:
    m = make(lib).Lin(2, 1)
    x = lib.ones(1, 2, requires_grad=True)
    log: list[str] = []
    m.register_full_backward_hook(lambda m, gi, go: log.append(f"{gi[0].tolist()}"))
    y = (m(x) ** 3).sum()
    (g,) = lib.autograd.grad(y, x, create_graph=True)
    say(log, g.tolist())
    g.sum().backward()
    say(log)
    say(x.grad.tolist(), m.weight.grad.tolist())


@program
def older_backward_hooks(lib: Any, say: Said) -> None:
    class Twice(lib.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2

    m = Twice()
    x = lib.ones(2, requires_grad=True)
    log: list[Any] = []
    m.register_backward_hook(lambda m, gi, go: log.append((gi[0], go)))
    m(x).sum().backward()
    say(log, x.grad)
    m.register_backward_hook(lambda m, gi, go: tuple(None if g is None else g * 0 for g in gi))
    m(x).sum().backward()
    say(x.grad)
    say.attempt("mixture", lambda: m.register_full_backward_hook(lambda *a: None))


@program
def global_hooks(lib: Any, say: Said) -> None:
    hooks = lib.nn.modules.module
    net = make(lib).Net()
    log: list[str] = []
    handles = [
        hooks.register_module_forward_pre_hook(lambda m, a: log.append(f"pre {type(m).__name__}")),
        hooks.register_module_forward_hook(lambda m, a, y: log.append(f"post {type(m).__name__}")),
        hooks.register_module_full_backward_hook(lambda m, gi, go: log.append("backward")),
        hooks.register_module_full_backward_pre_hook(lambda m, go: log.append("before")),
    ]
    net.first.register_forward_hook(lambda m, a, y: log.append("own"))
    net(lib.ones(1, 2, requires_grad=True)).sum().backward()
    say(log)
    say.attempt("mixture", lambda: hooks.register_module_backward_hook(lambda *a: None))
    for h in handles:
        h.remove()
    log.clear()
    net(lib.ones(1, 2)).sum().backward()
    say(log)
    log.clear()
    handles = [
        hooks.register_module_buffer_registration_hook(lambda m, n, b: log.append(f"b {n}")),
        hooks.register_module_module_registration_hook(lambda m, n, c: log.append(f"m {n}")),
        hooks.register_module_parameter_registration_hook(lambda m, n, p: log.append(f"p {n}")),
    ]
    make(lib).Net()
    for h in handles:
        h.remove()
    say(log)
    with hooks.register_module_forward_hook(lambda m, a, k, y: y + len(k), with_kwargs=True):
        say(make(lib).Lin(1, 1)(x=lib.zeros(1)))
