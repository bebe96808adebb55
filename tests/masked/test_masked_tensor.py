"""Masked tensors against torch: text of results, gradients, errors."""

from __future__ import annotations

from typing import Any

import pytest

import votive


def parts(t: Any) -> dict[str, Any]:
    """Names for expressions: data, a mask, masked tensors of both."""
    d = t.arange(6.0).reshape(2, 3) - 2
    m = t.tensor([[True, False, True], [False, False, True]])
    make = t.masked.masked_tensor
    return {"t": t, "make": make, "d": d, "m": m, "x": make(d, m), "y": make(d * 2, m), "z": make(d, ~m)}


EXPRESSIONS = """x
x + y
x + d
d + x
x + 1
x / y
x ** 2
x == y
x.exp()
t.sqrt(x)
x.sum()
x.sum(0)
x.sum(1, keepdim=True)
x.mean(1)
x.amax(1)
x.argmax(1)
x.prod(0)
x.all()
x.var()
x.softmax(1)
x.t()
x.reshape(3, 2)
x.view(3, 2)
x.expand(2, 2, 3)
x.unsqueeze(0)
x[0]
x[0, 1]
x[:, 1:]
x[0, 0].item()
x.get_data()
x.to_tensor(9.0)
x.clone()
x.double()
x.int()
t.where(m, x, z)
t.cat([x, x])
t.stack([x, x])
x.clamp(0, 1)
x.add_(1)
t.ones_like(x)
t.isnan(x)
t.maximum(x, y)
t.masked.sum(x, 1)
t.masked.softmax(x, 1)
x.stride()
make(t.tensor(1.0), t.tensor(False))
make(d.bool(), m)
make(t.tensor([1.5, 2e5, 3.0]), t.tensor([True, True, False]))
x + z
make(d, m.int())
make(d, m[0])
make(d.tolist(), m)
x[0, 1].item()
make(t.tensor([1 + 2j]), t.tensor([True]))"""


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
def test_expressions_print_as_in_torch() -> None:
    torch = pytest.importorskip("torch")
    for text in EXPRESSIONS.splitlines():
        try:
            theirs: Any = repr(eval(text, parts(torch))).replace("torch.", "votive.")
        except Exception as error:
            with pytest.raises(type(error)):
                eval(text, parts(votive))
        else:
            assert repr(eval(text, parts(votive))) == theirs, text


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
def test_gradients_are_masked_as_in_torch() -> None:
    torch = pytest.importorskip("torch")
    for text in (
        "(x * x).sum()",
        "x.exp().mean()",
        "x.to_tensor(3.0).sum()",
        "x.amax(1).sum()",
        "(x.softmax(1) * x).sum()",
        "x.prod()",
        "t.cat([x, x]).sum()",
        "t.where(m, x.exp(), z).sum()",
    ):
        found = []
        for library in (torch, votive):
            names = parts(library)
            names["x"] = names["make"](names["d"], names["m"], requires_grad=True)
            eval(text, names).backward()
            found.append(repr(names["x"].grad))
        assert found[0] == found[1], text


def test_what_has_no_rule_says_what_to_do() -> None:
    x = parts(votive)["x"]
    with pytest.raises(NotImplementedError, match=r"matmul: not implemented for masked tensors; use \.to_tensor"):
        x @ x.t()
    with pytest.raises(TypeError, match="plain tensor"):
        votive.ones(2, 3).add_(x)
