"""What cannot be traced splits a program there: pieces before and after are compiled, Python between runs as it is."""

from __future__ import annotations

import io
from typing import Any

import pytest

import votive
from votive import nn

from .compare import Outcome, alike, same

pytestmark = pytest.mark.usefixtures("interpreted")


def compiled_parts(program: Any) -> list[Any]:
    """A compiled program and all parts of it that run."""
    program = getattr(program, "__dict__", {}).get("_compiled", program)
    found = [program]
    inner = getattr(program.split, "__func__", program.split)
    made = getattr(inner, "made", None)
    for cell in getattr(made, "__closure__", None) or ():
        if isinstance(cell.cell_contents, type(program)):
            found += compiled_parts(cell.cell_contents)
    for _, unit in program.units.known.values():
        found += compiled_parts(unit)
    return found


def calls_run(program: Any) -> list[str]:
    """Operators of every graph that has run."""
    graphs = [e for p in compiled_parts(program) for es in p.entries.values() for e in es if e.runs]
    return [name for e in graphs for n in e.graph.nodes for name in _names(n)]


def _names(node: Any) -> list[str]:
    return list(node.args[1].covers) if node.op.name == "_region" else [node.op.name]


def item(x: Any, log: list[Any]) -> Any:
    a = x.sin() + 1
    log.append(a.sum().item())
    b = a.cos() * 2
    return b.exp()


def branch_on_a_value(x: Any, log: list[Any]) -> Any:
    a = x.sin() * 2
    if a.sum() > 0:
        b = a.cos() + 1
        log.append("positive")
    else:
        b = a.exp() - 1
        log.append("negative")
    return b.tanh()


def early_return(x: Any, log: list[Any]) -> Any:
    a = x.sin() * 2
    if a.sum() > 0:
        log.append("early")
        return a.cos() + 1
    log.append("late")
    return a.exp() - 1


def printing(x: Any, log: list[Any]) -> Any:
    a = x.sin()
    print(a.shape, file=io.StringIO())
    a = a.cos()
    print(float(a[0]), file=io.StringIO())
    return a.exp()


def numpy(x: Any, log: list[Any]) -> Any:
    a = x.sin()
    known = a.detach().numpy().copy()
    b = a.cos()
    return b.exp() + votive.tensor(known)


def shapes(x: Any, log: list[Any]) -> Any:
    a = x.sin()
    chosen = a[a > 0]
    b = chosen.cos() + chosen.shape[0]
    places = votive.nonzero(a)
    return b.exp(), places.shape[0] * a.exp()


def loop(x: Any, log: list[Any]) -> Any:
    total = x * 0
    for i in range(4):
        a = x.sin() * i
        total = total + a.cos()
        if total.sum() > 3:
            log.append(i)
            continue
        if total.sum() < -50:
            break
        total = total.exp() - 1
    else:
        total = total.tanh()
    return total


def while_value(x: Any, log: list[Any]) -> Any:
    a = x.sin().abs() + 1
    while a.sum() < 100:
        b = a.cos() * 0.1
        a = a * 2 + b.exp()
        log.append(1)
    return a


def try_except(x: Any, log: list[Any]) -> Any:
    a = x.sin()
    try:
        log.append("try")
        b = a.cos() + votive.ones(91)
    except RuntimeError as e:
        log.append(str(e)[:10])
        b = a.exp()
    finally:
        log.append("done")
    return b.tanh()


def with_blocks(x: Any, log: list[Any]) -> Any:
    with votive.no_grad():
        a = x.sin()
        log.append(a.sum().item())
        b = a.cos() + a
    with votive.autocast("cpu", enabled=False):
        c = b.exp() + x
    return c.tanh()


def helper(x: Any, log: list[Any]) -> Any:
    a = x.sin()
    log.append(float(a.mean()))
    return a.cos()


def in_a_function_that_is_called(x: Any, log: list[Any]) -> Any:
    a = x.exp()
    b = helper(a, log) + helper(a * 2, log)
    return b.tanh()


def counters(x: Any, log: list[Any]) -> Any:
    log.append(len(log))
    a = x.sin() * len(log)
    log.extend([1, 2])
    b, log[0] = a.cos(), 7
    return b.exp() * len(log)


def unbound_maybe(x: Any, log: list[Any]) -> Any:
    a = x.sin()
    if a.sum() > 1e6:
        extra = a * 2
    log.append(a.sum().item())
    if len(log) > 100:
        return extra
    return a.cos()


def captured(x: Any, log: list[Any]) -> Any:
    k = 1.0
    scaled = lambda t: t * k
    a = scaled(x.sin())
    log.append(a.sum().item())
    k = 2.0
    return scaled(a.cos())


def deleted(x: Any, log: list[Any]) -> Any:
    a = x.sin()
    b = a.cos()
    log.append(b.sum().item())
    del a
    a = b.exp()
    return a


def walrus(x: Any, log: list[Any]) -> Any:
    if (a := x.sin()).sum() > 0 and (b := a.cos()).sum() > 0:
        log.append(1)
        return a + b
    return a.exp()


def aliases(x: Any, log: list[Any]) -> Any:
    a = x.clone()
    b = a[0:1]
    parts = [a, b]
    again = parts
    log.append(a.sum().item())
    b.add_(1)
    again.append(a.sin())
    return a, b, parts, again


def locals_used(x: Any, log: list[Any]) -> Any:
    a = x.sin()
    log.append(sorted(locals()))
    b = a.cos()
    return b.exp()


PROGRAMS = [
    item,
    branch_on_a_value,
    early_return,
    printing,
    numpy,
    shapes,
    loop,
    while_value,
    try_except,
    with_blocks,
    in_a_function_that_is_called,
    counters,
    unbound_maybe,
    captured,
    deleted,
    walrus,
    aliases,
    locals_used,
]
# Where little can be compiled: somebody keeps a variable or looks at the frame, or what is set is not certain.
WHOLE = {"captured", "locals_used", "try_except", "walrus", "aliases"}


@pytest.mark.parametrize("gradients", [True, False], ids=["gradients", "none"])
@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda f: f.__name__)
def test_a_split_program_does_what_it_does_eagerly(fn: Any, gradients: bool) -> None:
    compiled = votive.compile(fn)

    def arguments(turn: int) -> dict[str, Any]:
        votive.manual_seed(turn)
        x = votive.rand(4) - (turn % 2) * 2
        return {"x": x.requires_grad_() if gradients else x, "log": []}

    for turn in (0, 1, 2, 3, 0, 1, 2, 3, 4, 5):
        one, other = Outcome(fn, arguments(turn), turn), Outcome(compiled, arguments(turn), turn)
        same(one, other)
        assert alike(one.arguments["log"], other.arguments["log"])
    assert compiled.eager
    ran = calls_run(compiled)
    if fn.__name__ not in WHOLE:
        assert "sin" in ran
        assert {"cos", "exp", "tanh"} & set(ran)


def test_pieces_hold_what_stands_before_and_after() -> None:
    compiled = votive.compile(item)
    for _ in range(4):
        compiled(votive.ones(3), [])
    pieces = [p for p in compiled_parts(compiled) if any(e.runs for es in p.entries.values() for e in es)]
    assert len(pieces) == 2
    assert calls_run(pieces[0]) == ["sin", "add"]
    assert calls_run(pieces[1]) == ["cos", "mul", "exp"]


def test_side_effects_happen_once_in_each_call() -> None:
    log: list[Any] = []
    compiled = votive.compile(item)
    for turn in range(1, 8):
        compiled(votive.ones(3), log)
        assert len(log) == turn


class Bad(nn.Module):
    """Its forward looks at a value; its child does not."""

    def __init__(self) -> None:
        super().__init__()
        self.child = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        self.count = 0

    def forward(self, x: Any) -> Any:
        self.count += 1
        h = self.child(x)
        if h.sum() > 1e9:
            h = h * 0
        return h.sigmoid() + x


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before = nn.Linear(4, 4)
        self.bad = Bad()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])

    def forward(self, x: Any) -> Any:
        x = self.bad(self.before(x).relu())
        for layer in self.layers:
            x = layer(x)
        return x.softmax(-1)


def test_children_of_a_module_that_cannot_be_traced_are_compiled() -> None:
    model = Outer()
    compiled = votive.compile(model)
    x = votive.randn(3, 4)
    for turn in range(1, 7):
        assert bool(votive.allclose(compiled(x), model(x), atol=1e-6))
        assert model.bad.count == 2 * turn
    ran = calls_run(compiled)
    assert ran.count("linear") >= 4
    assert {"tanh", "sigmoid"} <= set(ran)


def test_hooks_run_once_around_compiled_children() -> None:
    model = Outer()
    seen: list[str] = []
    model.register_forward_hook(lambda m, a, o: seen.append("outer"))
    model.bad.register_forward_pre_hook(lambda m, a: seen.append("bad"))
    model.before.register_full_backward_hook(lambda m, a, o: seen.append("back"))
    compiled = votive.compile(model)
    for turn in range(1, 6):
        compiled(votive.randn(3, 4, requires_grad=True)).sum().backward()
        assert seen == ["bad", "outer", "back"] * turn
    assert calls_run(compiled).count("linear") >= 2


def test_errors_of_a_split_module_name_its_path() -> None:
    model = nn.Sequential(Outer(), nn.Linear(3, 3))
    compiled = votive.compile(model)
    found = []
    for m in (model, compiled, compiled, compiled):
        with pytest.raises(RuntimeError) as e:
            m(votive.ones(2, 4))
        found.append((str(e.value), e.value.__notes__))
    assert all(f == found[0] for f in found)


def test_fullgraph_raises_and_names_the_line() -> None:
    line = item.__code__.co_firstlineno + 2
    with pytest.raises(RuntimeError, match=rf"fullgraph=True, but Python looks .*test_split\.py:{line}\)"):
        votive.compile(item, fullgraph=True)(votive.ones(3), [])
    line = helper.__code__.co_firstlineno + 2
    with pytest.raises(RuntimeError, match=rf"test_split\.py:{line}\)"):
        votive.compile(in_a_function_that_is_called, fullgraph=True)(votive.ones(3), [])
    with pytest.raises(RuntimeError, match="fullgraph=True, but it makes a StringIO"):
        votive.compile(printing, fullgraph=True)(votive.ones(3), [])


def test_fullgraph_raises_through_an_except_of_the_program() -> None:
    def fn(x: Any) -> Any:
        try:
            return x * x.sum().item()
        except Exception:
            return x

    with pytest.raises(RuntimeError, match="fullgraph=True"):
        votive.compile(fn, fullgraph=True)(votive.ones(3))


def test_a_method_and_super_are_split() -> None:
    class Base:
        def run(self, x: Any) -> Any:
            return x.sin()

    class Derived(Base):
        def __init__(self) -> None:
            self.seen: list[float] = []

        @votive.compile
        def run(self, x: Any) -> Any:
            a = super().run(x) * 2
            self.seen.append(a.sum().item())
            b = super().run(a).cos()
            return b.exp()

    one = Derived()
    x = votive.ones(3)
    want = ((x.sin() * 2).sin().cos()).exp()
    for turn in range(1, 6):
        assert bool(votive.allclose(one.run(x), want, atol=1e-6))
        assert len(one.seen) == turn
    assert "cos" in calls_run(Derived.__dict__["run"])


def test_functions_that_are_defined_anew_in_each_call_do_not_pile_up() -> None:
    def fn(x: Any, log: list[Any]) -> Any:
        def inner(t: Any) -> Any:
            return t.sin() + float(t.sum())

        return inner(x) * 2

    compiled = votive.compile(fn)
    for _ in range(30):
        compiled(votive.ones(2), [])
    assert len(compiled_parts(compiled)) < 25


def test_a_function_that_is_written_anew_is_split_anew() -> None:
    def fn(x: Any, log: list[Any]) -> Any:
        log.append(x.sum().item())
        return x.sin()

    def other(x: Any, log: list[Any]) -> Any:
        log.append("other")
        return x.cos()

    compiled = votive.compile(fn)
    for _ in range(3):
        compiled(votive.ones(2), [])
    fn.__code__ = other.__code__
    log: list[Any] = []
    assert compiled(votive.ones(2), log).tolist() == votive.ones(2).cos().tolist()
    assert log == ["other"]


def test_gradients_of_gradients_are_computed_where_a_program_is_not_one_graph() -> None:
    critic, seen = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), list[float]()

    def penalty(x: votive.Tensor) -> float:
        critic.zero_grad()
        at = x.clone().requires_grad_()
        score = critic(at).sum()
        seen.append(float(score))
        (g,) = votive.autograd.grad(score, at, create_graph=True)
        loss = (g.norm(2, 1) - 1).square().mean()
        loss.backward()
        return loss.item()

    compiled = votive.compile(penalty)
    for _ in range(5):
        x = votive.randn(4, 3)
        found, grads = compiled(x), [p.grad for p in critic.parameters()]
        assert found == pytest.approx(penalty(x))
        for p, g in zip(critic.parameters(), grads, strict=True):
            votive.testing.assert_close(g, p.grad)
