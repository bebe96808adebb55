"""complex32: stored as pairs of halves, computed in complex64."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import votive

EXPRESSIONS = """x
x * 2
x * 2j
x * h
x * f
x * c
-x
x.conj()
x.abs()
x.real
x.imag
t.view_as_real(x)
t.view_as_complex(t.tensor([[1.0, 2.0]]).half())
x.t()
x[0]
x[0, 1].item()
x.tolist()
x.to(t.complex64)
x.cfloat()
t.ones(2).chalf()
t.tensor([True]).chalf()
t.tensor([1 + 1j], dtype=t.complex32)
x.clone()
x.reshape(4)
x.is_complex()
x.element_size()
x.stride()
t.cat([x, x])
x == x
x.mul_(2)
x.zero_()
t.zeros_like(x)
t.where(x.real > 0, x, x * 2)
t.promote_types(t.complex32, t.float16)
t.promote_types(t.complex32, t.float32)
t.complex32.to_real()"""


def names(t: Any) -> dict[str, Any]:
    x = t.tensor([[1 + 2j, 1 - 3.5j], [0.25, 2 - 1j]]).to(t.complex32)
    h = t.tensor([[1.0, 2.0], [3.0, 4.0]]).half()
    return {"t": t, "x": x, "h": h, "f": t.ones(2, 2), "c": t.ones(2, 2, dtype=t.complex64)}


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
def test_expressions_print_as_in_torch() -> None:
    torch = pytest.importorskip("torch")
    for text in EXPRESSIONS.splitlines():
        theirs = repr(eval(text, names(torch))).replace("torch.", "votive.")
        assert repr(eval(text, names(votive))) == theirs, text


def test_parts_share_memory() -> None:
    x = votive.tensor([1 + 2j]).chalf()
    x.real.fill_(5)
    votive.view_as_real(x)[0, 1] = 7
    assert x.tolist() == [5 + 7j]


def test_gradients_keep_the_type() -> None:
    x = votive.tensor([1 + 2j, 3.0]).chalf().requires_grad_()
    (x * x.conj()).real.sum().backward()
    assert x.grad.dtype is votive.complex32
    assert x.grad.tolist() == [2 + 4j, 6 + 0j]
    z = votive.ones(2, requires_grad=True)
    (z.chalf() * 2).real.sum().backward()
    assert z.grad.tolist() == [2.0, 2.0]


def test_new_memory_of_this_type_is_refused_with_the_way_to_it() -> None:
    with pytest.raises(NotImplementedError, match=r"zeros: .*\.chalf\(\)"):
        votive.zeros(2, dtype=votive.complex32)
    x = votive.tensor([1 + 2j]).chalf()
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()
