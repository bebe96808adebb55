"""A compiled program does what the program does: values, gradients, views, writes, aliases, state, numbers, errors."""

from __future__ import annotations

import warnings
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from typing import Any

import pytest

import votive
from votive import nn
from votive.nn import functional as F

from .compare import Outcome, same

Pair = namedtuple("Pair", "left right")


@dataclass
class Record:
    scores: Any
    other: Any = None


class Holder:
    def __init__(self, x: Any) -> None:
        self.x = x
        self.list = [x, x * 2]


def write_and_return(x: Any, y: Any, w: Any) -> Any:
    x.add_(1)
    return x, x * 2


def write_through_a_view(x: Any, y: Any, w: Any) -> Any:
    x[0].mul_(3)
    x[:, 1:] += 1
    return x.sum()


def alias_outputs(x: Any, y: Any, w: Any) -> Any:
    a = w * 2
    return a, a, a[0], a.view(-1), a.detach(), a.T


def views_of_inputs(x: Any, y: Any, w: Any) -> Any:
    return x, x[0], w, w[:, 1:], w.T, y.detach(), w.detach()


def nested(x: Any, y: Any, w: Any) -> Any:
    shared = [w * 2]
    return {"a": shared, "b": (shared, Pair(x + 1, w)), "c": OrderedDict(z=w.sin()), "d": None, "e": 3, "f": "text"}


def objects(x: Any, y: Any, w: Any) -> Any:
    return Record(w * 2), Holder(x + 1)


def in_place_with_gradient(x: Any, y: Any, w: Any) -> Any:
    h = w * 2
    h[0] = 0.0
    h.mul_(y)
    k = h[1:]
    k += 1
    return h, k.sum()


def random(x: Any, y: Any, w: Any) -> Any:
    h = F.dropout(w, 0.5) + votive.rand_like(w)
    h = h + votive.randn(4) * votive.randint(0, 3, (4,))
    votive.rand(3)  # nobody looks, but the stream moves on
    return h * votive.empty_like(x).uniform_(), votive.randperm(5), votive.normal(0.0, 1.0, (2,))


def casts(x: Any, y: Any, w: Any) -> Any:
    return w.double().sin(), (w > 0).int(), w.half(), w.to(votive.bfloat16), x.long() + 1, x.bool()


def reductions(x: Any, y: Any, w: Any) -> Any:
    return w.softmax(-1), w.amax(0), w.std(), w.argmax(1), w.sort(0), w.cumsum(1), w.topk(2), w.logsumexp(0)


def branches(x: Any, y: Any, w: Any) -> Any:
    if x.shape[0] > 2 and x.ndim == 2:
        h = w * 2
    elif not x.requires_grad:
        h = w - 1
    else:
        h = w
    while h.ndim < 4:
        h = h[None]
    for i in range(h.shape[-1]):
        h = h + i
    return h if w.dtype is votive.float32 else None


def python(x: Any, y: Any, w: Any) -> Any:
    parts = [p * i for i, p in enumerate(w.unbind(0))]
    table = {f"k{i}": p for i, p in enumerate(parts)}
    a, *rest = parts
    total = sum(p.sum() for p in rest)
    best = max(range(3), key=lambda i: -i)
    chosen = [p for p in parts if p.ndim == 1][best]
    return votive.stack(list(table.values())), a + total, chosen, f"{len(rest)} parts", sorted(table)


def no_gradient_inside(x: Any, y: Any, w: Any) -> Any:
    with votive.no_grad():
        h = w * 2
        with votive.enable_grad():
            k = w * 3
    return h, k, h + k


def broadcast(x: Any, y: Any, w: Any) -> Any:
    return w + votive.ones(2, 1, 1), w * w[0], votive.einsum("ij,kj->ik", w, x), w @ x.T, votive.cat([w, x], 1)


def nothing(x: Any, y: Any, w: Any) -> Any:
    return None


def constants(x: Any, y: Any, w: Any) -> Any:
    a = votive.tensor([1.0, 2.0])
    b = votive.tensor([1.0, 2.0, 3.0])
    b.add_(1)
    c = votive.zeros(3)
    c.add_(b)
    return a, b, c, votive.arange(4), w.new_tensor([[1]])


def closures(x: Any, y: Any, w: Any) -> Any:
    def inner(t: Any, by: float = 2.0) -> Any:
        return t * by + w

    twice = lambda f, t: f(f(t))
    return twice(inner, x), [inner(x, by=k) for k in (1.0, 3.0)]


def out_argument(x: Any, y: Any, w: Any) -> Any:
    found = votive.empty(3, 4)
    votive.add(x, 1, out=found)
    votive.mul(x, 2, out=x)
    return found


PROGRAMS = [
    write_and_return,
    write_through_a_view,
    alias_outputs,
    views_of_inputs,
    nested,
    objects,
    in_place_with_gradient,
    random,
    casts,
    reductions,
    branches,
    python,
    no_gradient_inside,
    broadcast,
    nothing,
    constants,
    closures,
    out_argument,
]


def arguments(turn: int, gradients: bool) -> dict[str, Any]:
    votive.manual_seed(100 + turn)
    rows = 3 if turn != 2 else 5
    return {"x": votive.randn(rows, 4), "y": votive.rand(4), "w": votive.randn(rows, 4, requires_grad=gradients)}


@pytest.mark.parametrize("gradients", [True, False], ids=["gradients", "none"])
@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda f: f.__name__)
def test_a_program_does_what_it_does_eagerly(fn: Any, gradients: bool) -> None:
    compiled = votive.compile(fn)
    for turn in (0, 0, 1, 2, 2, 1):
        fitting = turn != 2 or fn is not out_argument
        if fitting:
            same(Outcome(fn, arguments(turn, gradients), turn), Outcome(compiled, arguments(turn, gradients), turn))
    assert not compiled.eager, compiled.breaks
    assert any(e.runs for versions in compiled.entries.values() for e in versions)


def test_one_object_in_a_result_is_one_object_again() -> None:
    def fn(x: Any) -> Any:
        part = [x * 2]
        return part, part, {"p": part}

    compiled = votive.compile(fn)
    for _ in range(2):
        a, b, c = compiled(votive.ones(2))
        assert a is b is c["p"]
    first, second = compiled(votive.ones(2)), compiled(votive.ones(2))
    assert first[0] is not second[0]
    assert first[0][0] is not second[0][0]


def test_a_detached_input_stays_detached() -> None:
    compiled = votive.compile(lambda x: (x.detach(), x, x[0]))
    for _ in range(3):
        x = votive.ones(2)
        a, b, c = compiled(x)
        assert a is not x
        assert b is x
        x.mul_(votive.ones(2, requires_grad=True))
        assert [t.requires_grad for t in (a, b, c)] == [False, True, True]


def test_results_of_two_calls_share_no_memory() -> None:
    compiled = votive.compile(lambda x: (x * 2, votive.tensor([1.0]), votive.zeros(2)))
    first = compiled(votive.ones(2))
    for t in first:
        t.fill_(9)
    second = compiled(votive.ones(2))
    assert [t.tolist() for t in second] == [[2.0, 2.0], [1.0], [0.0, 0.0]]


@pytest.mark.parametrize("kind", ["bn", "frozen", "momentum"])
def test_running_statistics_move_as_they_do_eagerly(kind: str) -> None:
    def make() -> Any:
        votive.manual_seed(0)
        m = nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, momentum=None if kind == "momentum" else 0.1), nn.ReLU()
        )
        return m.eval() if kind == "frozen" else m

    a, b = make(), make()
    compiled = votive.compile(b)
    for turn in range(4):
        votive.manual_seed(turn)
        x = votive.randn(2, 3, 6, 6)
        assert bool(votive.allclose(a(x), compiled(x), atol=1e-6))
        for p, q in zip(a.buffers(), b.buffers(), strict=True):
            assert bool(votive.allclose(p.double(), q.double(), atol=1e-6))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x + votive.ones(7, 9),
        lambda x: x.view(11),
        lambda x: x.transpose(0, 5),
        lambda x: x.nothing,
        lambda x: nn.Linear(3, 3)(x),
        lambda x: x[9],
        lambda x: (_ for _ in ()).throw(ValueError("mine")),
        lambda x: {}["missing"],
        lambda x: 1 / 0,
        lambda x: undefined_name,  # noqa: F821
        lambda x: votive.softmax(x, "dim"),
    ],
)
def test_an_error_is_the_same_error(fn: Any) -> None:
    compiled = votive.compile(fn)
    for _ in range(3):
        found = []
        for f in (fn, compiled):
            with pytest.raises(Exception) as e:
                f(votive.ones(2, 4))
            found.append((type(e.value), str(e.value), getattr(e.value, "__notes__", None)))
        assert found[0] == found[1]


def test_an_error_in_a_module_names_its_path() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(3, 3)))
    compiled = votive.compile(model)
    found = []
    for m in (model, compiled, compiled):
        with pytest.raises(RuntimeError) as e:
            m(votive.ones(2, 4))
        found.append((str(e.value), e.value.__notes__))
    assert found[0] == found[1] == found[2]
    assert "1.0" in "".join(found[0][1])


def test_wrong_arguments_are_refused_in_the_same_words() -> None:
    def fn(x: Any, *, k: int = 1) -> Any:
        return x * k

    compiled = votive.compile(fn)
    for args, kwargs in (((), {}), ((1, 2, 3), {}), ((votive.ones(1),), {"q": 2})):
        found = []
        for f in (fn, compiled):
            with pytest.raises(TypeError) as e:
                f(*args, **kwargs)
            found.append(str(e.value))
        assert found[0] == found[1]


def test_autocast_inside_and_outside() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2))
    compiled = votive.compile(model)
    x = votive.randn(3, 4)

    def step(m: Any, x: Any) -> Any:
        with votive.autocast("cpu", dtype=votive.bfloat16):
            return m(x)

    inside = votive.compile(lambda x: step(model, x))
    want = step(model, x)
    for _ in range(2):
        for got in (inside(x), step(compiled, x)):
            assert got.dtype is want.dtype
            assert bool(votive.allclose(want.float(), got.float(), atol=3e-2))


def test_a_warning_is_still_given() -> None:
    def fn(x: Any) -> Any:
        warnings.warn("look here", stacklevel=1)
        return x * 2

    compiled = votive.compile(fn)
    for _ in range(3):
        with pytest.warns(UserWarning, match="look here"):
            compiled(votive.ones(2))


def test_hooks_of_tensors_run_once_and_see_real_gradients() -> None:
    seen: list[float] = []
    compiled = votive.compile(lambda x: (x * 2).sum())
    for turn in range(3):
        w = votive.ones(2, requires_grad=True)
        h = w * 3
        h.register_hook(lambda g: seen.append(float(g.sum())))
        w.register_hook(lambda g: seen.append(float(g.sum())))
        h.retain_grad()
        compiled(h).backward()
        assert seen == [4.0, 12.0] * (turn + 1)
        assert h.grad.tolist() == [2.0, 2.0]


def test_a_result_that_nobody_differentiates_gives_no_gradient() -> None:
    def fn(x: Any, y: Any) -> Any:
        return x * 2, y * 3

    compiled = votive.compile(fn)
    for _ in range(3):
        x, y = votive.ones(2, requires_grad=True), votive.ones(2, requires_grad=True)
        compiled(x, y)[0].sum().backward()
        assert x.grad is not None
        assert y.grad is None


def test_inputs_that_depend_on_each_other_get_their_own_gradients() -> None:
    compiled = votive.compile(lambda a, b: (a * b).sum())
    for _ in range(3):
        w = votive.tensor([2.0, 3.0], requires_grad=True)
        h = w * w
        compiled(w, h).backward()
        assert w.grad.tolist() == [12.0, 27.0]


def test_backward_twice_with_retain_graph() -> None:
    compiled = votive.compile(lambda x: (x.sin() * x).sum())
    for _ in range(2):
        x = votive.ones(3, requires_grad=True)
        y = compiled(x)
        y.backward(retain_graph=True)
        first = x.grad.clone()
        y.backward()
        assert bool(votive.allclose(x.grad, first * 2))
        with pytest.raises(RuntimeError):
            y.backward()


def test_a_generator_of_ones_own_and_a_seed_inside() -> None:
    generator = votive.Generator()

    def fn(x: Any) -> Any:
        return x + votive.rand(2, generator=generator)

    def seeded(x: Any) -> Any:
        votive.manual_seed(5)
        return x + votive.rand(2)

    for f in (fn, seeded):
        compiled = votive.compile(f)
        for turn in range(4):
            found = []
            for g in (f, compiled):
                generator.manual_seed(turn)
                votive.manual_seed(turn)
                found.append([g(votive.zeros(2)).tolist(), generator.initial_seed(), votive.rand(1).item()])
            assert found[0] == found[1]


def test_seed_zero_draws_as_any_other() -> None:
    compiled = votive.compile(lambda x: F.dropout(x, 0.5))
    votive.manual_seed(0)
    compiled(votive.ones(64))
    votive.manual_seed(7)
    got = compiled(votive.ones(64))
    votive.manual_seed(7)
    assert got.tolist() == F.dropout(votive.ones(64), 0.5).tolist()


def test_where_a_tensor_begins_in_memory_is_asked_anew() -> None:
    def begun(x: Any) -> Any:
        return x * x.storage_offset()

    base, compiled = votive.arange(20) * 1.0, votive.compile(begun)
    for start in (4, 8, 0):
        x = base[start : start + 4]
        assert compiled(x).tolist() == begun(x).tolist()


def test_a_long_sum_is_compiled() -> None:
    def added(x: Any) -> Any:
        out = x
        for i in range(1500):
            out = out + x[i % 4]
        return out

    x = votive.ones(4)
    compiled = votive.compile(added)
    for _ in range(2):
        assert compiled(x).tolist() == added(x).tolist()


@pytest.mark.parametrize("change", [lambda x: x.t_(), lambda x: x.squeeze_(0), lambda x: x.transpose_(0, 1)])
def test_an_input_whose_shape_is_changed_has_the_new_shape(change: Any) -> None:
    def program(x: Any) -> Any:
        change(x)
        return x * 2

    compiled = votive.compile(program)
    for _ in range(2):
        x = votive.arange(3.0).reshape(1, 3)
        y = x.clone()
        assert compiled(x).shape == program(y).shape
        assert x.shape == y.shape
        assert votive.equal(x, y)
