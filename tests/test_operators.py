"""Operators as objects: what users call is what was declared, and looks like a function."""

from __future__ import annotations

import copy
import inspect
import os
import pickle
import pydoc
import subprocess
import sys
import threading

import pytest

import votive
from votive.backends.cpu import native
from votive.ops.operator import Composite, Op, Operator
from votive.ops.registry import COMPOSITES, OPS

PUBLIC = {**OPS, **COMPOSITES}


def test_function_method_and_declaration_are_one_object() -> None:
    assert votive.add is OPS["add"]
    assert votive.softmax is COMPOSITES["softmax"]
    if native.available:
        assert votive.Tensor.add is votive.add
        assert votive.Tensor.add_.of is votive.add


@pytest.mark.parametrize("name", sorted(n for n, o in PUBLIC.items() if not o.name.startswith("_")))
def test_every_operator_looks_like_a_function(name: str) -> None:
    operator = PUBLIC[name]
    assert isinstance(operator, (Op, Composite))
    assert callable(operator)
    assert inspect.isroutine(operator)
    signature = inspect.signature(operator)
    assert ("out" in signature.parameters) >= operator.out
    assert operator.__doc__ == operator.doc
    assert operator.__name__ == operator.name
    assert copy.deepcopy(operator) is operator
    assert repr(operator).startswith(f"<votive operator {operator.name}(")


@pytest.mark.parametrize("operator", [votive.add, votive.softmax, votive.linalg.norm], ids=["add", "softmax", "norm"])
def test_operators_are_pickled_by_name(operator: Operator) -> None:
    assert pickle.loads(pickle.dumps(operator)) is operator
    assert pickle.loads(pickle.dumps(votive.add.inplace_form)) is votive.add.inplace_form


def test_help_shows_the_function() -> None:
    text = pydoc.plain(pydoc.render_doc(votive.add))
    assert "add(input, other, *, alpha=1, out=None)" in text
    assert "`input + alpha * other`, elementwise." in text


x = votive.ones(2, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: votive.add(x), r"add\(\) missing 1 required positional argument: 'other'"),
        (lambda: votive.add(x, x, 2), r"add\(\) takes 2 positional arguments but 3 were given"),
        (lambda: votive.add(x, x, alfa=2), r"add\(\) got an unexpected keyword argument 'alfa'"),
        (lambda: votive.add(x, x, input=x), r"add\(\) got multiple values for argument 'input'"),
        (lambda: votive.sum(x, dim=0, axis=1), r"got both 'dim' and 'axis'"),
        (lambda: votive.softmax(x), r"softmax\(\) missing 1 required positional argument: 'dim'"),
        (lambda: votive.exp("a"), r"exp: argument 'input' must be a Tensor, got str"),
        (lambda: x.exp(1), r"exp\(\) takes 1 positional argument but 2 were given"),
    ],
    ids=["missing", "too many", "unknown", "twice", "two spellings", "of a composite", "type", "method"],
)
def test_wrong_arguments_are_named_as_python_names_them(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize("first", [False, True], ids=["before a plan", "with a plan"])
def test_keywords_in_any_order_and_spelling_lead_to_the_same(first: bool) -> None:
    y = votive.tensor([[1.0, 2.0], [3.0, 4.0]])
    if first:
        y.sum(0, True)
    wanted = [[4.0, 6.0]]
    assert votive.sum(y, 0, True).tolist() == wanted
    assert votive.sum(keepdim=True, dim=0, input=y).tolist() == wanted
    assert votive.sum(y, axis=0, keepdims=True).tolist() == wanted
    assert y.sum(axis=0, keepdim=True).tolist() == wanted
    out = votive.empty(1, 2)
    assert votive.sum(y, 0, keepdim=True, out=out) is out
    assert out.tolist() == wanted


def test_names_of_keywords_may_be_made_at_run_time() -> None:
    y = votive.tensor([[1.0, 2.0], [3.0, 4.0]])
    axis, out = "".join(["ax", "is"]), "".join(["ou", "t"])
    for _ in range(2):
        assert votive.softmax(y, **{axis: 0}).tolist() == votive.softmax(y, 0).tolist()
        assert votive.sum(y, **{axis: 0}).tolist() == [4.0, 6.0]
        into = votive.empty(2, 2)
        assert votive.softmax(y, 0, **{out: into}) is into


def test_a_kernel_for_a_gpu_is_registered_before_the_gpu_is_used() -> None:
    with votive.register_kernel("cumsum", lambda x, dim, dtype: x, device="cuda"):
        pass
    with pytest.raises(TypeError, match="widen=False is for kernels of the CPU"):
        votive.register_kernel("cumsum", lambda x, dim, dtype: x, device="cuda", widen=False)
    with pytest.raises(RuntimeError, match="nowhere"):
        votive.register_kernel("cumsum", lambda x, dim, dtype: x, device="nowhere")


def test_true_and_one_are_different_static_arguments() -> None:
    y = votive.ones(2, 2)
    assert y.sum(1).shape == (2,)
    with pytest.raises(TypeError):
        y.sum(True)
    assert y.sum(1, 1).shape == (2, 1)  # as in torch, 1 serves as True


def test_reflected_operators_swap_their_sides() -> None:
    y = votive.tensor([1.0, 2.0])
    for _ in range(2):
        assert (3 - y).tolist() == [2.0, 1.0]
        assert (2.0 / y).tolist() == [2.0, 1.0]
        assert (2**y).tolist() == [2.0, 4.0]
        assert (y.__radd__(1)).tolist() == [2.0, 3.0]
    assert y.__add__("a") is NotImplemented


def test_calls_in_many_threads_find_their_own_plans() -> None:
    wrong: list[int] = []

    def work(n: int) -> None:
        for k in range(1, 60):
            y = votive.ones(n, k)
            if (y + y).sum().item() != 2 * n * k or y.view(k, n).shape != (k, n):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 9)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_the_same_holds_when_nothing_was_compiled() -> None:
    if not native.available:
        pytest.skip("nothing was compiled")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not looks_like", __file__]
    result = subprocess.run(command, env={**os.environ, "VOTIVE_NATIVE": "0"}, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-3000:]
