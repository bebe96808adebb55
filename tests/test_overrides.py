"""`__torch_function__`: subclasses, tensor-likes and modes answer calls as in torch."""

from __future__ import annotations

import copy
import functools
import inspect
import subprocess
import sys

import pytest

import votive
from votive import overrides
from votive.nn import functional as F
from votive.ops.operator import Operator


class Sub(votive.Tensor):
    pass


class Deeper(Sub):
    pass


class Other(votive.Tensor):
    pass


def sub(*values: float, cls: type = Sub) -> votive.Tensor:
    return votive.tensor(values).as_subclass(cls)


def test_a_subclass_without_a_rule_of_its_own_rewraps_every_result() -> None:
    x = sub(1.0, 2.0)
    results = [x + 1, 1 - x, x.exp(), x.softmax(0), x[0], x.view(2, 1), x.detach(), x.data, F.relu(x), x.max(0).values]
    results += [votive.stack([x, votive.ones(2)]), *x.unbind(), x.to(votive.float64), x.clone(), x @ x]
    assert [type(r) for r in results] == [Sub] * len(results)
    assert type(x.shape) is votive.Size
    assert type(x.tolist()) is list
    assert x.sum().item() == 3
    assert type(x.add_(1)) is Sub
    assert x.tolist() == [2, 3]


def test_the_subclass_wins_over_its_base_on_either_side() -> None:
    assert type(sub(1.0) + sub(1.0, cls=Deeper)) is Deeper
    assert type(sub(1.0, cls=Deeper) * sub(1.0)) is Deeper
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+: 'Sub' and 'Other'"):
        sub(1.0) + sub(1.0, cls=Other)


def test_gradients_flow_through_as_subclass_to_leaves_of_either_class() -> None:
    x = votive.ones(2, requires_grad=True)
    (x.as_subclass(Sub) * 3).sum().backward()
    assert type(x.grad) is votive.Tensor
    assert x.grad.tolist() == [3, 3]
    leaf = Sub([1.0, 2.0])
    leaf.requires_grad_()
    (leaf * leaf).sum().backward()
    assert leaf.grad.tolist() == [2, 4]


def test_parameters_give_plain_tensors_and_do_not_slow_down_others() -> None:
    p = votive.nn.Parameter(votive.ones(2))
    assert type(p + 1) is votive.Tensor
    assert type(p * sub(1.0, 1.0)) is Sub
    assert not overrides.has_torch_function((p, votive.ones(1)))


def test_subclasses_are_made_and_shown_by_their_name() -> None:
    class Tagged(votive.Tensor):
        @staticmethod
        def __new__(cls, data, tag):  # type: ignore[no-untyped-def]
            return votive.Tensor._make_subclass(cls, data)

        def __init__(self, data, tag):  # type: ignore[no-untyped-def]
            self.tag = tag

    x = Tagged(votive.ones(2), "here")
    assert x.tag == "here"
    assert type(x * 2) is Tagged
    assert repr(sub(1.0, 2.0)) == "Sub([1., 2.])"
    assert repr(votive.ones(2, 1).as_subclass(Sub)) == "Sub([[1.],\n     [1.]])"


def test_copies_keep_the_class() -> None:
    x = sub(1.0)
    x.note = "kept"
    assert type(copy.copy(x)) is Sub
    assert type(copy.deepcopy(x)) is Sub
    assert copy.deepcopy(x).note == "kept"


class Scaled:
    """A tensor-like that knows two functions."""

    known: dict = {}

    def __init__(self, n: int) -> None:
        self.n = n

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        if func not in cls.known or not all(issubclass(t, (votive.Tensor, Scaled)) for t in types):
            return NotImplemented
        return cls.known[func](*args, **(kwargs or {}))


def implements(function):  # type: ignore[no-untyped-def]
    def register(rule):  # type: ignore[no-untyped-def]
        Scaled.known[function] = functools.wraps(function)(rule)
        return rule

    return register


@implements(votive.mean)
def mean(x, **kwargs):  # type: ignore[no-untyped-def]
    return x.n


@implements(votive.einsum)
def einsum(text, *xs):  # type: ignore[no-untyped-def]
    return text, [x.n for x in xs]


@implements(votive.add)
def add(a, b):  # type: ignore[no-untyped-def]
    return "sum"


def test_a_tensor_like_answers_operators_composites_and_lists() -> None:
    assert votive.mean(Scaled(4)) == 4
    assert votive.einsum("i,i->", Scaled(1), Scaled(2)) == ("i,i->", [1, 2])
    assert votive.add(votive.ones(1), Scaled(1)) == "sum"
    assert votive.ones(1) + Scaled(1) == "sum"
    for call in (
        lambda: votive.exp(Scaled(1)),
        lambda: votive.stack([Scaled(1)]),
        lambda: F.layer_norm(Scaled(1), (2,)),
    ):
        with pytest.raises(TypeError, match="Multiple dispatch failed for 'votive"):
            call()


FIRST_CALL = """
import votive
class Like:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__
assert votive.flatten(Like(), 1) == "flatten"
assert votive.exp(Like()) == "exp"
with votive.inference_mode():
    assert votive.nn.functional.layer_norm(Like(), (2,)) == "layer_norm"
"""


def test_the_first_call_of_a_function_asks_too() -> None:
    subprocess.run([sys.executable, "-c", FIRST_CALL], check=True)


class Record(overrides.TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_a_mode_sees_public_calls_once_and_modes_nest() -> None:
    with Record() as outer, Record() as inner:
        x = votive.ones(2, 3) * 2
        F.cross_entropy(x, votive.tensor([0, 1]))
    assert inner.names == ["ones", "mul", "tensor", "cross_entropy"] == outer.names
    votive.ones(2)
    assert len(inner.names) == 4
    with Record() as one, overrides.DisableTorchFunction():
        votive.ones(2)
    assert one.names == []


def test_disabled_subclasses_give_plain_results() -> None:
    with overrides.DisableTorchFunctionSubclass():
        assert type(sub(1.0) + 1) is votive.Tensor
        assert not overrides.has_torch_function((sub(1.0),))
    assert overrides.has_torch_function((sub(1.0),))


def test_python_functions_join_in() -> None:
    @overrides.wrap_torch_function(lambda x: (x,))
    def double(x):  # type: ignore[no-untyped-def]
        return x * 2

    Scaled.known[double] = lambda x: ("doubled", x.n)
    assert double(Scaled(3)) == ("doubled", 3)
    assert double(votive.ones(1)).item() == 2


def test_what_can_be_overridden_is_listed_by_namespace() -> None:
    found = overrides.get_overridable_functions()
    assert votive.add in found[votive]
    assert F.gelu in found[F]
    assert votive.Tensor.shape.__get__ in found[votive.Tensor]
    assert overrides.resolve_name(votive.linalg.inv) == "votive.linalg.inv"
    assert overrides.is_tensor_method_or_property(votive.Tensor.add)
    assert overrides.is_tensor_like(Scaled(1))
    assert not overrides.is_tensor_like([1])
    assert overrides.get_testing_overrides()[votive.add](1, 2) == -1
    assert votive.manual_seed in overrides.get_ignored_functions()


def test_a_wrong_argument_beside_tensors_is_refused_once_and_lets_nobody_be_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Operator, "overriding", False)
    with pytest.raises(TypeError, match="argument 'dim' must be int"):
        votive.softmax(votive.ones(2), "x")
    assert not Operator.overriding


def test_a_handler_tells_reflected_operators_by_their_names() -> None:
    seen: list[tuple[str, bool]] = []

    class Named(votive.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            # Without native kernels a method is a function before its operator.
            method = inspect.unwrap(getattr(votive.Tensor, func.__name__))
            seen.append((func.__name__, func is method))
            return super().__torch_function__(func, types, args, kwargs)

    x = votive.tensor([1, 2]).as_subclass(Named)
    assert (2 - x).tolist() == [1, 0]
    assert (2**x).tolist() == [2, 4]
    2 / x, 2 // x, 2 % x, 2 << x, 2 >> x, 2 + x, 2 & x  # type: ignore[operator]
    names = ["__rsub__", "__rpow__", "__rdiv__", "__rfloordiv__", "__rmod__", "__rlshift__", "__rrshift__"]
    assert [(n, True) for n in (*names, "add", "bitwise_and")] == [s for s in seen if s[0] not in ("tolist", "__get__")]
