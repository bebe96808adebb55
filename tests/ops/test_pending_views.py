"""Lazily conjugated and negated views: one memory, two readings, and the meant values in every operator."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import votive
from votive.surface.pending import Pending, negated_view

from .catalog import arrays, load, transform

RECORDS = [r for r in load() if "c" in r.dtypes]
# Lines that print the same with torch. `x` is looked at, `y` its conjugate, `m` a matrix, `n` a negated view.
LINES = """y, y.is_conj(), y.is_neg(), y.data_ptr() == x.data_ptr(), t.is_conj(x)
y.conj(), y.conj().is_conj(), y.conj().data_ptr() == x.data_ptr()
y.clone().is_conj(), y.contiguous().is_conj(), y.detach().is_conj(), y.data.is_conj(), y.cpu().is_conj()
y.resolve_conj().is_conj(), y.resolve_conj(), y.resolve_neg() is y, x.resolve_conj() is x
y.real, y.imag, y.imag.is_neg(), y.imag.resolve_neg(), y.imag.resolve_neg().is_neg(), y.imag.storage_offset()
y.imag + 1, -y.imag, y.imag.tolist(), y.imag[1].item(), t.conj(y.imag)
n, n.is_neg(), n.abs(), n[0], n.view(2, 1), n.sum(), n.to(t.int32), n.conj()
y.view(2, 1), y.view(2, 1).is_conj(), y[0], y[0].is_conj(), y[:1].is_conj(), y[[1, 0]], y[y.abs() > 3]
y.reshape(1, 2).is_conj(), y.flatten().is_conj(), y.t().is_conj(), y.expand(2, 2), y.unbind()[1].is_conj()
m.mH, m.mH.is_conj(), m.H.stride(), m.adjoint(), m.mH.reshape(-1), m.mH @ m, m.mT.conj().is_conj()
[p.is_conj() for p in m.conj().chunk(2)], [p.is_conj() for p in m.conj().split(1, 1)], m.conj().diagonal()
y.to(t.complex64).is_conj(), y.to(t.complex128), y.tolist(), y[0].item(), y.conj_physical(), y.abs(), y.angle()
t.stack([y, x]), t.cat([y]), t.where(t.tensor([True, False]), y, x), t.vdot(y, x), t.linalg.norm(y), y == x, y.diag()
t.zeros_like(y), y.new_zeros(1), y.numpy(force=True), y._is_view(), y.untyped_storage().data_ptr() == x.data_ptr()
t.view_as_real(y.resolve_conj()), y.positive().is_conj(), t.fft.fft(y), y.squeeze().is_conj(), t.isreal(y), y.sgn()
t.conj(t.ones(2)), t.ones(2).conj().is_conj(), x.sum().conj(), x.sum().conj().is_conj()
y.add_(1), x
y.__setitem__(0, 5j), x, y
y.mul_(x), x
y.imag.mul_(2), x
y.zero_(), x
y.copy_(t.tensor([1j, 2])), x
y.fill_(2j), x, y.is_conj()
t.mul(t.tensor([1j, 1j]), 2, out=y), x
x.copy_(y), x, y
t.add(y, 1, out=x), x, y, t.add(y, x, out=t.zeros(2, dtype=t.complex64)), t.matmul(m.mH, m, out=t.zeros_like(m))
y.expand_as(m.conj()).is_conj(), y.view_as(y[:]).is_conj(), y.reshape_as(m[0].conj()).is_conj(), y[n.abs() > 1.7]
y[:1].mul_(1j), x
m.mH[0].mul_(2), m
m.conj().t_().is_conj(), m.conj().transpose_(0, 1), y.unsqueeze_(0), y.shape, y.is_conj(), y.squeeze_(0), x
x.mul_(y), x, y
x.__setitem__(0, y[1]), x
t.einsum("ij,j->i", m.conj(), y), t.linalg.solve(m.mH, y), t.nn.functional.linear(y, m.conj())
""".splitlines()
REFUSED = """y.numpy()
y.imag.numpy()
t.view_as_real(y)
y.view(t.float32)
y.imag.view(t.int32)
""".splitlines()


def _names(package: Any, negated: Any) -> dict[str, Any]:
    x = package.tensor([1 + 2j, 3 - 1j])
    m = package.tensor([[1 + 2j, 3 - 1j], [0.5j, 2 + 1j]])
    return {"t": package, "x": x, "y": x.conj(), "m": m, "n": negated(package.tensor([1.5, -2.0]))}


def _numbers(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_numbers(v) for v in value]
    if hasattr(value, "resolve_conj"):
        return value.resolve_conj().resolve_neg().detach().numpy()
    return value


def _same(a: Any, b: Any, line: str) -> None:
    if isinstance(b, list):
        assert len(a) == len(b), line
        for v, w in zip(a, b, strict=True):
            _same(v, w, line)
    elif isinstance(b, np.ndarray):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), line
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, err_msg=line)
    else:
        assert (type(a), a) == (type(b), b), line


@pytest.mark.parity
@pytest.mark.parametrize("line", LINES)
def test_a_line_gives_what_it_gives_in_torch(line: str) -> None:
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = _numbers(eval(line, _names(torch, torch._neg_view)))
    _same(_numbers(eval(line, _names(votive, negated_view))), want, line)


@pytest.mark.parity
@pytest.mark.parametrize("line", REFUSED)
def test_what_would_read_memory_is_refused_as_in_torch(line: str) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError) as theirs:
        eval(line, _names(torch, torch._neg_view))
    with pytest.raises(RuntimeError) as ours:
        eval(line, _names(votive, negated_view))
    assert str(ours.value).split(".")[0] == str(theirs.value).replace("torch.Tensor.view", "Tensor.view").split(".")[0]


# What is refused for such views, or looks at memory.
_OTHERWISE = {"view_as_real", "is_conj", "resize_", "resize_as_", "empty_like", "new_empty"}


def _lazy(a: np.ndarray) -> Any:
    """A tensor with the values of an array; where they are complex, a view of their conjugates."""
    return votive.tensor(a.conj()).conj() if a.dtype.kind == "c" else votive.tensor(a)


def _flat(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [t for r in result for t in _flat(r)]
    return [result]


@pytest.mark.parametrize("lot", range(8))
def test_every_operator_computes_with_the_values_of_views(lot: int) -> None:
    wrong = []
    for record in RECORDS[lot::8]:
        fn = record.resolve(votive)
        for sample in record.samples[:3]:
            made = arrays(record, sample, "complex128")
            plain, plain_named = transform(made, votive.tensor, np.ndarray)
            lazy, lazy_named = transform(made, _lazy, np.ndarray)
            if record.name.rpartition(".")[2] in _OTHERWISE:
                continue
            try:
                votive.manual_seed(3)
                want = _flat(fn(*plain, **plain_named))
                votive.manual_seed(3)
                got = _flat(fn(*lazy, **lazy_named))
                _same(_numbers(got), _numbers(want), record.name)
            except Exception as e:
                wrong.append(f"{record.name} {str(sample)[:80]}: {type(e).__name__} {str(e)[:200]}")
    assert not wrong, "\n".join([str(len(wrong)), *wrong])


@pytest.mark.parametrize("lot", range(8))
def test_gradients_of_every_operator_pass_through_views(lot: int) -> None:
    wrong = []
    for record in RECORDS[lot::8]:
        fn = record.resolve(votive)
        if record.grad is False or record.random or record.name == "view_as_real":
            continue
        for sample in record.samples[:2]:
            made = arrays(record, sample, "complex128")
            leaves: list[Any] = []

            def leaf(a: np.ndarray, leaves: list[Any] = leaves) -> Any:
                t = votive.tensor(a.conj() if a.dtype.kind == "c" else a)
                if t.dtype.is_complex or t.dtype.is_floating_point:
                    leaves.append(t.requires_grad_())
                return t

            args, named = transform(made, leaf, np.ndarray)
            results = []
            for turn in (votive.conj, votive.conj_physical):
                look = lambda t, turn=turn: turn(t) if t.dtype.is_complex else t
                outs = _flat(fn(*transform(args, look, votive.Tensor), **transform(named, look, votive.Tensor)))
                outs = [o for o in outs if isinstance(o, votive.Tensor) and o.requires_grad]
                total = sum((o.abs() * votive.arange(1, o.numel() + 1).view(o.shape)).sum() for o in outs)
                found = votive.autograd.grad(total, leaves, allow_unused=True) if outs else []
                results.append([g for g in found if g is not None])
            try:
                _same(_numbers(results[0]), _numbers(results[1]), record.name)
            except Exception as e:
                wrong.append(f"{record.name} {str(sample)[:80]}: {type(e).__name__} {str(e)[:200]}")
    assert not wrong, "\n".join([str(len(wrong)), *wrong])


def test_gradients_reach_views_of_views_and_what_was_written() -> None:
    a = votive.tensor([1 + 1j, 2 - 1j], requires_grad=True)
    b = a.conj()
    b.retain_grad()
    assert b.requires_grad
    assert not b.is_leaf
    (b[0] * b[0] * 1j).real.backward()
    np.testing.assert_allclose(b.grad.numpy(), [2 - 2j, 0])
    np.testing.assert_allclose(a.grad.resolve_conj().numpy(), [2 + 2j, 0])
    a.grad = None
    c = a * 1
    d = c.conj()
    d.mul_(2j)
    np.testing.assert_allclose(c.detach().numpy(), np.conj(a.detach().numpy().conj() * 2j))
    d.imag.sum().backward()
    np.testing.assert_allclose(a.grad.resolve_conj().numpy(), [2, 2])
    a.grad = None
    c = a * 1
    d = c.conj()
    c.mul_(3)  # the view follows
    d.imag.sum().backward()
    np.testing.assert_allclose(a.grad.resolve_conj().numpy(), [-3j, -3j])
    with pytest.raises(RuntimeError, match="leaf"):
        a.conj().add_(1)


def test_a_gradient_of_a_custom_function_may_be_such_a_view() -> None:
    class Twice(votive.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return 2 * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            assert ctx.saved_tensors[0].is_conj()
            return (2 * g).conj().conj().mT.conj().conj() if g.ndim > 1 else (2 * g.conj()).conj()

    x = votive.tensor([1 + 2j], requires_grad=True)
    y = x.conj()
    (Twice.apply(y) * (3 + 1j) + y).real.sum().backward()
    z = votive.tensor([1 + 2j], requires_grad=True)
    (2 * z.conj_physical() * (3 + 1j) + z.conj_physical()).real.sum().backward()
    np.testing.assert_allclose(x.grad.resolve_conj().numpy(), z.grad.numpy())
    w = votive.ones(1, dtype=votive.complex64, requires_grad=True)
    (w * 1j).backward(votive.tensor([1 + 2j]).conj())
    np.testing.assert_allclose(w.grad.resolve_conj().numpy(), [-2 - 1j])


def test_views_are_kept_by_pickles_and_resolved_by_copies() -> None:
    x = votive.tensor([1 + 2j])
    back = pickle.loads(pickle.dumps(x.conj()))
    assert back.is_conj()
    assert back.tolist() == [1 - 2j]
    assert copy.copy(x.conj()).is_conj()
    assert copy.copy(x.conj()).tolist() == [1 - 2j]
    assert not copy.deepcopy(x.conj()).is_conj()
    assert copy.deepcopy(x.conj()).tolist() == [1 - 2j]
    file = io.BytesIO()
    votive.save({"x": x.conj()}, file)
    file.seek(0)
    assert votive.load(file)["x"].tolist() == [1 - 2j]


def test_transformations_and_modules_take_views() -> None:
    x = votive.tensor([[1 + 2j, 3j], [1, 2 - 1j]])
    y = x.conj()
    got = votive.func.vmap(lambda r: (r * r).sum())(y)
    np.testing.assert_allclose(got.numpy(), (y.resolve_conj() ** 2).sum(1).numpy(), rtol=1e-6)
    inside = votive.func.vmap(lambda r: (r.conj() * r).sum())(x)
    np.testing.assert_allclose(inside.numpy(), (x.abs() ** 2).sum(1).numpy(), rtol=1e-6)
    _out, tangent = votive.func.jvp(lambda r: r.conj() * 2, (x,), (y,))
    np.testing.assert_allclose(tangent.resolve_conj().numpy(), 2 * x.numpy())
    compiled = votive.compile(lambda r: r.conj() * r + r.mH)
    for _ in range(3):
        np.testing.assert_allclose(compiled(x).numpy(), (x * y + x.mH).numpy())
        np.testing.assert_allclose(compiled(y).numpy(), (x * y + x.mT).numpy())
    parameter = votive.nn.Parameter(y)
    assert parameter.requires_grad
    assert parameter.tolist() == y.tolist()
    layer = votive.nn.Linear(2, 2, dtype=votive.complex64)
    np.testing.assert_allclose(layer(y).detach().numpy(), layer(y.resolve_conj()).detach().numpy())
    with votive.no_grad():
        layer.weight.copy_(x.mH)
    assert layer.weight.tolist() == x.mH.tolist()
    assert isinstance(y.to("meta"), votive.Tensor)
    assert y.to("meta").shape == (2, 2)


def test_real_numbers_and_other_classes_are_not_wrapped() -> None:
    assert type(votive.ones(2).conj()) is votive.Tensor
    x = votive.ones(2)
    assert x.conj() is x or x.conj().data_ptr() == x.data_ptr()
    assert isinstance(votive.ones(2, dtype=votive.complex64).conj(), Pending)
    with pytest.raises(RuntimeError, match="bool"):
        negated_view(votive.tensor([True]))


def test_views_of_views_have_second_derivatives() -> None:
    rng = np.random.default_rng(3)
    a, w = (rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3)) for _ in range(2))
    c = rng.normal(size=(3, 3))
    ways = {
        "mH.mH": (lambda x: x.mH.mH.abs(), lambda x: x.abs()),
        "conj.T": (lambda x: x.conj().T.abs(), lambda x: x.conj_physical().T.abs()),
        "rows": (lambda x: (x.mH[1:] * x[1:]).abs(), lambda x: (x.T.conj_physical()[1:] * x[1:]).abs()),
        "split": (lambda x: x.conj().split(2)[0].abs(), lambda x: x.conj_physical()[:2].abs()),
        "svd": (lambda x: votive.svd(x).V.mH.abs(), lambda x: votive.linalg.svd(x).Vh.abs()),
    }
    for name, both in ways.items():
        found = []
        for f in both:
            x = votive.tensor(a, requires_grad=True)
            y = f(x)
            seed = votive.tensor(c[: y.shape[0]], requires_grad=True)
            (g,) = votive.autograd.grad(y, x, seed, create_graph=True)
            found.append([g, *votive.autograd.grad(g, (x, seed), votive.tensor(w))])
        for ours, plain in zip(*found, strict=True):
            np.testing.assert_allclose(ours.numpy(force=True), plain.numpy(force=True), atol=1e-12, err_msg=name)
