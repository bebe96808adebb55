"""Nested tensors: against torch where it has the call, against their components otherwise."""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any

import numpy as np
import pytest

import votive

EXPRESSIONS = """x
x.size(0)
x.size(-1)
x.dim()
x.numel()
x.unbind()
x[1]
x.values()
x + x
x + 1
x * 2
x.sin()
x.relu()
x.sum(-1, keepdim=True)
x.softmax(-1)
x.softmax(1)
t.nn.functional.linear(x, t.ones(2, 3), t.ones(2))
t.nn.functional.dropout(x, 0.0)
x.transpose(1, 2)
x.to_padded_tensor(0.0)
x.to_padded_tensor(-1.0, (2, 5, 3))
N.to_padded_tensor(x, 0.0)
x.double()
x.unsqueeze(-1)
x.view(2, -1, 3, 1)
x.reshape(2, -1, 1, 3)
t.cat([x, x], -1)
t.zeros_like(x)
x.chunk(3, -1)
x.split([1, 2], -1)
x.select(2, 0)
x[..., 0]
x.masked_fill(x > 2, 0.0)
N.nested_tensor([])
N.nested_tensor([a.int(), b.int()], layout=lay)
N.nested_tensor([[1.0, 2.0], [3.0]], layout=lay)
N.as_nested_tensor([a, b], layout=lay)
N.as_nested_tensor(t.ones(2, 3, 4), layout=lay)
N.nested_tensor([a, t.ones(2)], layout=lay)"""
JAGGED = """x.shape
x.stride()
x.offsets()
x.lengths()
1 - x
x + t.ones(3)
x == x
x.sum()
x.sum(-1)
x.sum(1)
x.sum((0, 1))
x.mean()
x.mean(-1)
x.mean(1)
x.amax(1)
x.argmax(-1)
x.max()
x.any()
x.pow(2)
x @ t.ones(3, 2)
t.nn.functional.layer_norm(x, (3,))
x.unflatten(-1, [3, 1])
x.permute(0, 2, 1)
x[..., 0:2]
t.where(x > 2, x, x)
len(x)
list(x)
x.contiguous()
x.sum(0)
x.sum((1, 2))
x.flatten(1)
x.nope()
N.nested_tensor([a, t.ones(2, 2)], layout=lay).shape
N.nested_tensor_from_jagged(v, off)
N.nested_tensor_from_jagged(v, lengths=off[1:] - off[:-1])
N.nested_tensor_from_jagged(v, off, off[:2] + 1).unbind()
N.nested_tensor_from_jagged(v, off, off[:2] + 1).contiguous().offsets()
N.nested_tensor_from_jagged(v)
N.nested_tensor_from_jagged(v, off, off[:2] + 1).to_padded_tensor(0.0)
N.narrow(base, 1, t.tensor([0, 2]), t.tensor([3, 1]), layout=lay).unbind()
N.narrow(base, 1, 0, t.tensor([3, 1]), layout=lay).offsets()
N.masked_select(base[0], base[0] > 3).unbind()
x + N.nested_tensor([a, b], layout=lay)"""


def parts(t: Any, layout: str) -> dict[str, Any]:
    a, b = t.arange(6.0).reshape(2, 3), t.arange(12.0).reshape(4, 3)
    names = {"t": t, "N": t.nested, "a": a, "b": b, "lay": getattr(t, layout)}
    names["x"] = t.nested.nested_tensor([a, b], layout=names["lay"])
    names |= {"v": t.arange(10.0).reshape(5, 2), "off": t.tensor([0, 2, 5]), "base": t.arange(24.0).reshape(2, 6, 2)}
    return names


def shown(value: Any) -> str:
    """Components of nested tensors, and text of anything else, with ragged sizes without their numbers."""
    if getattr(value, "is_nested", False):
        return "nested " + " ".join(repr(c) for c in value.unbind())
    if isinstance(value, (tuple, list)):
        return " ".join(map(shown, value))
    return re.sub(r"j\d+", "j", repr(value))


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", ["strided", "jagged"])
def test_expressions_give_what_torch_gives(layout: str) -> None:
    torch = pytest.importorskip("torch")
    for text in (EXPRESSIONS + ("\n" + JAGGED if layout == "jagged" else "")).splitlines():
        try:
            theirs = shown(eval(text, parts(torch, layout))).replace("torch.", "votive.")
        except Exception as error:
            with pytest.raises(type(error)):
                eval(text, parts(votive, layout))
        else:
            assert shown(eval(text, parts(votive, layout))) == theirs, text


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
def test_they_print_as_in_torch() -> None:
    torch = pytest.importorskip("torch")
    for layout in ("strided", "jagged"):
        theirs, ours = (re.sub(r"j\d+", "j", repr(parts(t, layout)["x"])) for t in (torch, votive))
        assert ours == theirs


def components() -> list[Any]:
    rng = np.random.default_rng(0)
    return [votive.tensor(rng.standard_normal((n, 8)), requires_grad=True) for n in (3, 1, 5)]


CALLS: dict[str, Any] = {
    "layer_norm": lambda x: votive.nn.functional.layer_norm(x, (8,)),
    "softmax": lambda x: x.softmax(-1),
    "mlp": lambda x: votive.nn.functional.gelu(x @ votive.ones(8, 4, dtype=x.dtype)) * x[..., :4],
    "mean": lambda x: x.mean(-1, keepdim=True) * x,
}


@pytest.mark.parametrize("name", CALLS)
def test_gradients_are_those_of_the_components(name: str) -> None:
    apart = components()
    wanted = [(CALLS[name](c) ** 2).sum() for c in apart]
    votive.autograd.backward(sum(wanted[1:], wanted[0]))
    together = components()
    x = votive.nested.as_nested_tensor(together, layout=votive.jagged)
    (CALLS[name](x) ** 2).sum().backward()
    for a, b in zip(apart, together, strict=True):
        np.testing.assert_allclose(b.grad.numpy(), a.grad.numpy(), rtol=1e-10)


@pytest.mark.parametrize("causal", [False, True])
def test_components_attend_to_themselves(causal: bool) -> None:
    attend = votive.nn.functional.scaled_dot_product_attention

    def run(parts: list[Any], nested: bool) -> Any:
        if not nested:
            heads = [c.unflatten(-1, [2, 4]).transpose(0, 1) for c in parts]
            return sum((attend(h, h * 2, h + 1, is_causal=causal) ** 2).sum() for h in heads)
        x = votive.nested.as_nested_tensor(parts, layout=votive.jagged)
        h = x.unflatten(-1, [2, 4]).transpose(1, 2)
        out = attend(h, h * 2, h + 1, is_causal=causal)
        assert out.transpose(1, 2).flatten(2).size(2) == 8
        return (out**2).sum()

    apart, together = components(), components()
    one, other = run(apart, False), run(together, True)
    np.testing.assert_allclose(other.item(), one.item(), rtol=1e-10)
    one.backward()
    other.backward()
    for a, b in zip(apart, together, strict=True):
        np.testing.assert_allclose(b.grad.numpy(), a.grad.numpy(), rtol=1e-8, atol=1e-12)


def test_a_leaf_has_a_nested_gradient() -> None:
    x = votive.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=votive.jagged, requires_grad=True)
    (x * x).sum().backward()
    (x.sum(1) * votive.tensor([1.0, 10.0])).sum().backward()
    assert x.grad.is_nested
    assert [g.tolist() for g in x.grad.unbind()] == [[3.0, 5.0], [16.0]]
    table = votive.nn.Embedding(4, 2)
    at = votive.nested.nested_tensor([[1, 2], [3]], layout=votive.jagged)
    assert [tuple(c.shape) for c in table(at).unbind()] == [(2, 2), (1, 2)]


def test_a_batch_broadcasts_to_its_components() -> None:
    x = votive.nested.nested_tensor([votive.ones(2, 3), votive.ones(1, 3)], layout=votive.jagged)
    per_item = votive.tensor([1.0, 5.0]).reshape(2, 1, 1)
    assert [c.tolist() for c in (x * per_item).unbind()] == [[[1.0] * 3] * 2, [[5.0] * 3]]
    with pytest.raises(RuntimeError, match="along the ragged dimension"):
        x * votive.ones(2, 2, 3)


def test_copies_and_refusals() -> None:
    x = votive.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=votive.jagged)
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert votive.equal(x, y)
    with pytest.raises(NotImplementedError, match=r"cumsum: not implemented for nested tensors; use \.unbind"):
        x.cumsum(1)
    with pytest.raises(NotImplementedError, match="differ in one dimension"):
        votive.nested.nested_tensor([votive.ones(1, 2), votive.ones(2, 1)])
    with pytest.raises(RuntimeError, match="beyond"):
        votive.nested.nested_tensor_from_jagged(votive.ones(3), votive.tensor([0, 9]))
