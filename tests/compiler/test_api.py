"""`votive.compile` as it is called: decorators, methods, modules, options, `disable`, `reset`, limits."""

from __future__ import annotations

import copy
import functools
import gc
import pickle
import threading
import weakref
from typing import Any

import pytest

import votive
from votive import nn
from votive.compiler import api


def entries(program: Any) -> list[Any]:
    program = getattr(program, "__dict__", {}).get("_compiled", program)
    return [e for es in program.entries.values() for e in es]


def test_a_decorator_with_and_without_options() -> None:
    @votive.compile
    def one(x: Any) -> Any:
        """What it does."""
        return x * 2

    @votive.compile(fullgraph=True, dynamic=False, mode="reduce-overhead")
    def two(x: Any) -> Any:
        return x * 3

    for _ in range(2):
        assert one(votive.ones(1)).item() == 2
        assert two(x=votive.ones(1)).item() == 3
    assert one.__name__ == "one"
    assert one.__doc__ == "What it does."
    assert len(entries(one)) == 1


def test_a_method_is_compiled_for_each_object() -> None:
    class Thing:
        def __init__(self, k: float) -> None:
            self.k = k

        @votive.compile
        def scaled(self, x: Any) -> Any:
            return x * self.k

    a, b = Thing(2.0), Thing(3.0)
    for _ in range(3):
        assert a.scaled(votive.ones(1)).item() == 2
        assert b.scaled(votive.ones(1)).item() == 3
    bound = votive.compile(Thing(5.0).scaled)
    assert bound(votive.ones(1)).item() == 5


def test_a_compiled_module_is_the_module_otherwise() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    compiled = votive.compile(model)
    assert isinstance(compiled, nn.Module)
    assert list(compiled.state_dict()) == [f"_orig_mod.{k}" for k in model.state_dict()]
    assert next(compiled.parameters()) is model[0].weight
    assert compiled[0] is model[0]
    compiled.eval()
    assert not model.training
    compiled.train()
    assert model.training
    compiled.extra = 3
    assert model.extra == 3
    x = votive.randn(4, 2)
    twin = copy.deepcopy(compiled)
    with votive.no_grad():
        twin[0].weight.zero_()
    assert float(model[0].weight.abs().sum()) > 0
    assert twin(x).shape == (4, 3)
    assert pickle.loads(pickle.dumps(compiled))(x).shape == (4, 3)


def test_module_compile_changes_the_module_itself() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    x = votive.randn(3, 2)
    want = model(x)
    keys = list(model.state_dict())
    assert model.compile() is None
    assert bool(votive.allclose(model(x), want))
    assert bool(votive.allclose(model(x), want))
    assert list(model.state_dict()) == keys
    assert entries(model.forward)[0].runs


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"mode": "fastest"}, "unrecognized mode='fastest'"),
        ({"mode": "default", "options": {"a": 1}}, "either mode or options"),
        ({"backend": "tvm"}, "no backend 'tvm'"),
        ({"options": {"shape_padding": True}}, "unknown options"),
    ],
)
def test_what_is_not_known_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        votive.compile(lambda x: x, **options)
    with pytest.raises(TypeError, match="expected a function or a module, got int"):
        votive.compile(3)


def test_disable_gives_the_function_itself() -> None:
    fn = lambda x: x
    assert votive.compile(fn, disable=True) is fn
    assert votive.compile(fn, backend="eager") is fn


def test_a_disabled_function_runs_as_it_is_in_compiled_programs() -> None:
    seen: list[bool] = []

    @votive.compiler.disable
    def plain(x: Any) -> Any:
        seen.append(votive.compiler.is_compiling())
        return x * float(x.sum())

    @votive.compile
    def fn(x: Any) -> Any:
        a = x.sin()
        b = plain(a)
        return b.cos()

    for turn in range(1, 6):
        x = votive.ones(2)
        assert bool(votive.allclose(fn(x), (x.sin() * float(x.sin().sum())).cos(), atol=1e-6))
        assert len(seen) == turn
    assert not any(seen[1:])
    inner = votive.compile(lambda x: x * 2)
    votive.compiler.disable(lambda x: inner(x))(votive.ones(1))
    assert entries(inner) == []
    votive.compiler.disable(lambda x: inner(x), recursive=False)(votive.ones(1))
    assert len(entries(inner)) == 1


def test_the_reason_for_disabling_is_told() -> None:
    @votive.compiler.disable(reason="it asks for a number")
    def plain(x: Any) -> Any:
        return x * float(x.sum())

    @votive.compile(fullgraph=True)
    def fn(x: Any) -> Any:
        return plain(x.sin())

    with pytest.raises(RuntimeError, match=r"keeps as it is \(it asks for a number\)"):
        fn(votive.ones(2))


def test_is_compiling_is_true_while_a_program_is_traced() -> None:
    def fn(x: Any) -> Any:
        return x * 2 if votive.compiler.is_compiling() else x * 3

    compiled = votive.compile(fn)
    assert not votive.compiler.is_compiling()
    assert fn(votive.ones(1)).item() == 3
    assert compiled(votive.ones(1)).item() == 2
    assert compiled(votive.ones(1)).item() == 2
    assert not votive.compiler.is_compiling()


def test_reset_forgets_every_version() -> None:
    compiled = votive.compile(lambda x: x * 2)
    compiled(votive.ones(1))
    compiled(votive.ones(2))
    assert len(entries(compiled)) == 2
    votive.compiler.reset()
    assert entries(compiled) == []
    assert compiled(votive.ones(1)).item() == 2


def test_a_signature_is_compiled_once_and_a_change_is_told_in_one_line() -> None:
    k = 1.0

    def fn(x: Any, n: int = 1) -> Any:
        return x * k + n

    compiled = votive.compile(fn)
    for _ in range(3):
        compiled(votive.ones(2))
    assert len(entries(compiled)) == 1
    compiled(votive.ones(3))
    compiled(votive.ones(3), 2)
    compiled(votive.ones(3), 5)
    k = 2.0
    compiled(votive.ones(3), 5)
    told = compiled.recompilations
    assert "x was" in told[0]
    assert "n was 2, is 5" in told[1]
    assert "variable k was 1.0, is 2.0" in told[2]


def test_a_program_that_always_differs_is_compiled_a_bounded_number_of_times() -> None:
    compiled = votive.compile(lambda x, n: x * n)
    for n in range(api.LIMIT):
        assert compiled(votive.ones(2), n).sum().item() == 2 * n
    with pytest.warns(UserWarning, match=f"compiled {api.LIMIT} times, last because n was"):
        compiled(votive.ones(2), 100)
    for n in range(20):  # what was compiled runs compiled, what is new as it is, and nobody warns again
        assert compiled(votive.ones(2), n).sum().item() == 2 * n
    assert len(entries(compiled)) == api.LIMIT


def test_a_compiled_program_dies_with_its_last_user() -> None:
    model = nn.Linear(2, 2)
    compiled = votive.compile(model)
    compiled(votive.ones(1, 2)).sum().backward()
    compiled(votive.ones(1, 2))
    gone = weakref.ref(model), weakref.ref(compiled.__dict__["_compiled"])
    del model, compiled
    gc.collect()
    assert [g() for g in gone] == [None, None]


def test_arguments_do_not_live_longer_than_their_call() -> None:
    compiled = votive.compile(lambda x: (x * 2).sum())
    x = votive.ones(3, requires_grad=True)
    compiled(x).backward()
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None


def test_threads_compile_and_run_at_the_same_time() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    compiled = votive.compile(model)
    wrong: list[Any] = []

    def work(k: int) -> None:
        for i in range(10):
            x = votive.full((k + 1, 4), float(i))
            if not bool(votive.allclose(compiled(x), model(x), atol=1e-6)):
                wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_somebody_who_looks_inside_sees_every_call() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    compiled = votive.compile(model)
    x = votive.randn(1, 2)
    want = [compiled(x) for _ in range(3)][-1]
    seen: list[Any] = []
    with model[0].register_forward_hook(lambda m, a, o: seen.append(o)):
        got = compiled(x)
    assert len(seen) == 1
    assert bool(votive.allclose(got, want))
    compiled(x)
    assert len(seen) == 1


def test_lambdas_partials_and_callable_objects() -> None:
    import functools

    class Scale:
        def __init__(self, k: float) -> None:
            self.k = k

        def __call__(self, x: Any) -> Any:
            return x * self.k

    scale = Scale(2.0)
    for fn, want in ((lambda x: x * 5, 5), (functools.partial(lambda k, x: x * k, 3), 3), (scale, 2)):
        compiled = votive.compile(fn)
        assert [compiled(votive.ones(1)).item() for _ in range(3)] == [want] * 3
    compiled = votive.compile(scale)
    compiled(votive.ones(1))
    scale.k = 7.0
    assert compiled(votive.ones(1)).item() == 7


def test_cached_functions_and_methods_of_text_and_sets_are_followed() -> None:
    @functools.lru_cache(maxsize=8)
    def plan(pattern: str) -> tuple[int, ...]:
        left, right = ({c for c in part if str.isalpha(c)} for part in str.split(pattern, "->"))
        return tuple(sorted(len(c) for c in set.difference(left, right)))

    @votive.compile(fullgraph=True)
    def fn(x: Any) -> Any:
        return x.sum(plan("ab->b"))

    x = votive.arange(4.0).reshape(2, 2)
    for _ in range(3):
        assert fn(x).tolist() == x.sum(1).tolist()
    assert len(entries(fn)) == 1
