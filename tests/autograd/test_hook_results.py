"""What hooks, functions and callers may give as a gradient: what does not fit is refused with the
error that torch has, wherever it comes in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import votive


def _hook(T: Any, f: Any) -> Any:
    a = T.ones(3, requires_grad=True)
    a.register_hook(f)
    (a * 2).sum().backward()
    return a.grad


def _inner(T: Any, f: Any) -> Any:
    a = T.ones(3, requires_grad=True)
    b = a * 2
    b.register_hook(f)
    (b * 3).sum().backward()
    return a.grad


def _asked(T: Any, f: Any) -> Any:
    b = T.ones(3, requires_grad=True) * 2
    b.register_hook(f)
    return T.autograd.grad((b * 3).sum(), b)[0]


def _retained(T: Any, f: Any) -> Any:
    b = T.ones(3, requires_grad=True) * 2
    b.retain_grad()
    b.register_hook(f)
    (b * 3).sum().backward()
    return b.grad


def _before_node(T: Any, f: Any) -> Any:
    a = T.ones(3, requires_grad=True)
    b = a * 2
    b.grad_fn.register_prehook(lambda grads: (f(grads[0]),))
    (b * 3).sum().backward()
    return a.grad


def _behind_node(T: Any, f: Any) -> Any:
    a = T.ones(3, requires_grad=True)
    b = a * T.ones(3)
    b.grad_fn.register_hook(lambda gi, go: (f(gi[0]), None))
    (b * 3).sum().backward()
    return a.grad


def _module(T: Any, f: Any) -> Any:
    layer = T.nn.Identity()
    layer.register_full_backward_hook(lambda m, gi, go: (f(gi[0]),))
    a = T.ones(3, requires_grad=True)
    layer(a * 2).sum().backward()
    return a.grad


def _before_module(T: Any, f: Any) -> Any:
    layer = T.nn.Identity()
    layer.register_full_backward_pre_hook(lambda m, go: (f(go[0]),))
    a = T.ones(3, requires_grad=True)
    layer(a * 2).sum().backward()
    return a.grad


def _after_accumulation(T: Any, f: Any) -> Any:
    a = T.ones(3, requires_grad=True)
    a.register_post_accumulate_grad_hook(lambda p: f(p.grad))
    (a * 2).sum().backward()
    return a.grad


def _function(T: Any, f: Any) -> Any:
    class Mine(T.autograd.Function):  # type: ignore[name-defined,misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return f(g)

    a = T.ones(3, requires_grad=True)
    Mine.apply(a).sum().backward()
    return a.grad


def _given(T: Any, f: Any) -> Any:
    a = T.ones(3, requires_grad=True)
    (a * 2).backward(f(T.ones(3)))
    return a.grad


def _unpacked(T: Any, f: Any) -> Any:
    a = T.ones(3, requires_grad=True)
    with T.autograd.graph.saved_tensors_hooks(lambda x: x, f):
        y = (a * a).sum()
    y.backward()
    return a.grad


PLACES: dict[str, Callable[[Any, Any], Any]] = {
    "tensor hook": _hook,
    "inner tensor hook": _inner,
    "grad": _asked,
    "retain_grad": _retained,
    "node prehook": _before_node,
    "node hook": _behind_node,
    "module hook": _module,
    "module pre-hook": _before_module,
    "post-accumulate hook": _after_accumulation,
    "function": _function,
    "given": _given,
    "unpack hook": _unpacked,
}
RESULTS: dict[str, Callable[[Any, Any], Any]] = {
    "the same": lambda T, g: g,
    "another": lambda T, g: 5 * g.detach(),
    "too long": lambda T, g: T.ones(7),
    "one": lambda T, g: T.ones(1),
    "a scalar": lambda T, g: T.tensor(2.0),
    "more dimensions": lambda T, g: T.ones(2, 3),
    "float64": lambda T, g: g.detach().double(),
    "integers": lambda T, g: g.detach().int(),
    "complex": lambda T, g: g.detach().to(T.complex64),
    "half": lambda T, g: g.detach().half(),
    "a number": lambda T, g: 2.0,
    "a list": lambda T, g: [g],
    "a tuple": lambda T, g: (g,),
    "an array": lambda T, g: g.detach().numpy(),
}
# Of those that may replace a gradient.
HOOKS = [p for p in PLACES if p not in ("function", "given", "unpack hook")]


def _outcome(T: Any, place: str, result: str) -> Any:
    try:
        found = PLACES[place](T, lambda g: RESULTS[result](T, g))
        return None if found is None else (str(found.dtype).split(".")[1], found.tolist())
    except TypeError:
        return TypeError
    except RuntimeError:
        return RuntimeError


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("result", RESULTS)
def test_a_gradient_is_taken_or_refused_as_in_torch(place: str, result: str) -> None:
    torch = pytest.importorskip("torch")
    assert _outcome(votive, place, result) == _outcome(torch, place, result)


@pytest.mark.parametrize("place", HOOKS)
def test_a_hook_may_not_change_what_a_gradient_is(place: str) -> None:
    for result in ("too long", "one", "a scalar", "more dimensions"):
        with pytest.raises(RuntimeError, match="has changed the size of value"):
            PLACES[place](votive, lambda g, r=result: RESULTS[r](votive, g))
    for result in ("float64", "integers", "complex", "half"):
        with pytest.raises(RuntimeError, match="has changed the type of value"):
            PLACES[place](votive, lambda g, r=result: RESULTS[r](votive, g))
    for result in ("a number", "a list", "an array"):
        with pytest.raises(TypeError, match="must return a Tensor or None"):
            PLACES[place](votive, lambda g, r=result: RESULTS[r](votive, g))


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("kind", ["register_hook", "register_prehook"])
def test_a_hook_of_a_node_gives_as_many_gradients_as_it_got(kind: str, n: int) -> None:
    a, c = (votive.ones(3, requires_grad=True) for _ in range(2))
    b = a * c
    getattr(b.grad_fn, kind)(lambda *grads: (votive.ones(3),) * n)
    if (kind, n) == ("register_prehook", 1):
        b.sum().backward()
        return
    with pytest.raises(RuntimeError, match="incorrect number of values"):
        b.sum().backward()


def test_hooks_of_a_node_see_gradients_in_the_shape_of_its_inputs() -> None:
    seen = []
    a = votive.ones(3, requires_grad=True)
    b = a * votive.ones(4, 3)
    b.grad_fn.register_hook(lambda gi, go: seen.append([None if g is None else g.shape for g in gi]))
    b.sum().backward()
    assert seen == [[(3,), None]]


def test_a_gradient_that_was_taken_away_goes_nowhere() -> None:
    a = votive.ones(3, requires_grad=True)
    b = a * 2
    b.grad_fn.register_prehook(lambda grads: (None,))
    (b * 3).sum().backward()
    assert a.grad is None


def test_what_is_none_stays_none() -> None:
    a = votive.ones(3, requires_grad=True)
    b = a * votive.ones(3)
    b.grad_fn.register_hook(lambda gi, go: (gi[0], votive.ones(3)))
    with pytest.raises(RuntimeError, match="None gradient"):
        b.sum().backward()


def test_a_pack_hook_leaves_its_tensor_alone() -> None:
    b = votive.ones(3, requires_grad=True) * 2
    with (
        votive.autograd.graph.saved_tensors_hooks(lambda x: x.detach().mul_(2), lambda x: x),
        pytest.raises(RuntimeError, match="in place"),
    ):
        b * b
