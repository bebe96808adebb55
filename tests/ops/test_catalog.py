"""Loops over the catalog: values, gradients, layouts, dtypes, errors, in-place and out= forms."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import votive as vt

from .catalog import KINDS, TOLERANCE, Record, S, arrays, load, transform

RECORDS = load()
IDS = [r.name for r in RECORDS]
each = pytest.mark.parametrize("record", RECORDS, ids=IDS)


def tensors(x: Any, requires_grad: bool = False) -> Any:
    """NumPy arrays inside arguments become tensors."""

    def make(a: np.ndarray) -> vt.Tensor:
        t = vt.from_numpy(np.array(a))
        return t.requires_grad_() if requires_grad and t.dtype.is_inexact else t

    return transform(x, make, np.ndarray)


def outputs(result: Any) -> list[Any]:
    """The tensors of a result, however nested."""
    if isinstance(result, vt.Tensor):
        return [result]
    if isinstance(result, (tuple, list)):
        return [t for r in result for t in outputs(r)]
    return []


def outcome(fn: Callable[[], list[Any]]) -> Any:
    """What a run gives: tensors, or the error."""
    vt.manual_seed(7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return fn()
        except Exception as e:
            return e


def wide(a: Any) -> np.ndarray:
    """Values in the widest type of their kind, so that comparing loses nothing."""
    a = np.asarray(a)
    if a.dtype.kind == "c":
        return a.astype(np.complex128)
    if a.dtype.kind in "biu":
        return a.astype(np.int64) if a.dtype.kind != "b" else a
    return a.astype(np.float64)


def dtypes_of(record: Record) -> list[str]:
    return [d for k in record.dtypes for d in KINDS[k]]


def close(record: Record, dtype: str, got: Any, want: Any, what: str) -> None:
    got, want = wide(got), wide(want)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
    rtol, atol = record.tol.get(dtype, TOLERANCE.get(dtype, (0, 0)))
    if got.dtype.kind in "bi" and want.dtype.kind in "bi":
        np.testing.assert_array_equal(got, want, err_msg=what)
        return
    if not TOLERANCE.get(dtype) and dtype not in record.tol:
        rtol, atol = TOLERANCE["float32"]  # integers in, default float out
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, equal_nan=True, err_msg=what)


@each
def test_values_agree_with_an_independent_reference(record: Record) -> None:
    if record.reference is None:
        pytest.skip("compared with torch only")
    fn = record.resolve(vt)
    for sample in record.samples:
        for dtype in dtypes_of(record):
            args, kwargs = arrays(record, sample, dtype)
            got = outputs(fn(*tensors(args), **tensors(kwargs)))
            widened = transform((args, kwargs), wide, np.ndarray)
            with np.errstate(all="ignore"):
                want = record.reference(*widened[0], **widened[1])
            want = list(want) if isinstance(want, (tuple, list)) else [want]
            assert len(got) == len(want)
            for g, w in zip(got, want, strict=True):
                close(record, dtype, g.detach().resolve_conj().numpy(), w, f"{record.name}{sample} {dtype}")


def to_torch(x: Any, torch: Any, requires_grad: bool = False) -> Any:
    def make(a: np.ndarray) -> Any:
        if a.dtype.name.startswith(("bfloat", "float8")):  # what NumPy does not know
            t = torch.from_numpy(a.astype(np.float32)).to(getattr(torch, a.dtype.name))
        else:
            t = torch.from_numpy(np.array(a))
        return t.requires_grad_() if requires_grad and (t.is_floating_point() or t.is_complex()) else t

    def swap(v: Any) -> Any:
        return getattr(torch, v.name)

    return transform(transform(x, make, np.ndarray), swap, vt.dtype)


def torch_outputs(result: Any, torch: Any) -> list[Any]:
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, (tuple, list)):
        return [t for r in result for t in torch_outputs(r, torch)]
    return []


def torch_numpy(t: Any, torch: Any) -> np.ndarray:
    t = t.detach().resolve_conj().resolve_neg()
    return t.float().numpy() if t.dtype == torch.bfloat16 else t.numpy()


@pytest.mark.parity
@each
def test_values_dtypes_and_gradients_agree_with_torch(record: Record) -> None:
    torch = pytest.importorskip("torch")
    if record.torch is False:
        pytest.skip("torch has no such operator")
    torch.manual_seed(7)  # random projections may be ill-conditioned
    vt.manual_seed(7)
    fn = record.resolve(vt)
    twin = record.torch if callable(record.torch) else record.resolve(torch)
    for sample in record.samples:
        for dtype in dtypes_of(record):
            args, kwargs = arrays(record, sample, dtype)
            differentiate = dtype in ("float64", "complex128") and record.grad is not False
            t_args, t_kwargs = to_torch((args, kwargs), torch, differentiate)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    want = torch_outputs(twin(*t_args, **t_kwargs), torch)
                except (NotImplementedError, RuntimeError) as e:
                    if "not implemented" in str(e) or "not support" in str(e):
                        continue  # votive may do more than torch
                    raise
            v_args, v_kwargs = tensors((args, kwargs), differentiate)
            got = outputs(fn(*v_args, **v_kwargs))
            what = f"{record.name}{sample} {dtype}"
            assert len(got) == len(want), what
            for g, w in zip(got, want, strict=True):
                assert g.dtype.name == str(w.dtype).removeprefix("torch."), what
                assert tuple(g.shape) == tuple(w.shape), what
                if not record.random:
                    close(record, dtype, g.detach().resolve_conj().numpy(), torch_numpy(w, torch), what)
            if differentiate and not record.random:
                same_gradients(record, dtype, what, (v_args, v_kwargs), got, (t_args, t_kwargs), want, torch)


def leaves(x: Any, kind: type) -> list[Any]:
    found: list[Any] = []
    transform(x, lambda t: found.append(t), kind)
    return [t for t in found if t.requires_grad]


def same_gradients(
    record: Record, dtype: str, what: str, v_in: Any, got: Any, t_in: Any, want: Any, torch: Any
) -> None:
    pairs = [(g, w) for g, w in zip(got, want, strict=True) if w.requires_grad]
    assert [bool(g.requires_grad) for g in got] == [bool(w.requires_grad) for w in want], what
    if not pairs:
        return
    rng = np.random.default_rng(record.seed("weights"))
    weights = []
    for _, w in pairs:
        a = rng.uniform(-1, 1, tuple(w.shape))
        if w.is_complex():
            a = a + 1j * rng.uniform(-1, 1, tuple(w.shape))
        weights.append(np.asarray(a).astype(torch_numpy(w, torch).dtype))
    xs, ts = leaves(v_in, vt.Tensor), leaves(t_in, torch.Tensor)
    g_got = vt.autograd.grad(
        [g for g, _ in pairs], xs, [vt.from_numpy(np.array(w)) for w in weights], allow_unused=True
    )
    g_want = torch.autograd.grad(
        [w for _, w in pairs], ts, [torch.from_numpy(np.array(w)) for w in weights], allow_unused=True
    )
    for i, (a, b) in enumerate(zip(g_got, g_want, strict=True)):
        if a is None or b is None:
            zero = a if b is None else b
            assert zero is None or not np.any(zero.detach().numpy()), f"{what}: gradient {i}"
            continue
        close(record, dtype, a.resolve_conj().numpy(), torch_numpy(b, torch), f"{what}: gradient {i}")


def grad_inputs(record: Record, sample: Any) -> tuple[Any, Any, list[vt.Tensor]]:
    """Arguments in float64 with the differentiated tensors requiring grad."""
    rng = np.random.default_rng(record.seed("grad" + repr(sample)))
    args, kwargs = record.split(sample)
    wanted = None if record.grad is True else tuple(record.grad)
    found: list[vt.Tensor] = []

    def make(s: S, active: bool) -> vt.Tensor:
        t = vt.from_numpy(s.make(rng, "float64", record.domain, record.kinks))
        if active and s.grad and t.dtype.is_inexact:
            found.append(t.requires_grad_())
        return t

    made = tuple(transform(a, lambda s, i=i: make(s, wanted is None or i in wanted)) for i, a in enumerate(args))
    made_kw = transform(kwargs, lambda s: make(s, wanted is None))
    return made, made_kw, found


@each
def test_gradients_agree_with_central_differences_to_order_two(record: Record) -> None:
    if record.grad is False:
        pytest.skip("not differentiable")
    if record.random:
        pytest.skip("random result")
    fn = record.resolve(vt)
    checked = 0
    for sample in record.samples:
        args, kwargs, xs = grad_inputs(record, sample)
        if not xs or any(x.numel() == 0 for x in xs):
            continue
        rng = np.random.default_rng(record.seed("dir"))
        weights: list[Any] = []

        def scalar(args: Any = args, kwargs: Any = kwargs, weights: Any = weights, rng: Any = rng) -> Any:
            total: Any = 0.0
            outs = [o for o in outputs(fn(*args, **kwargs)) if o.dtype.is_inexact and o.requires_grad]
            for i, o in enumerate(outs):
                if o.dtype.is_complex:
                    o = vt.view_as_real(o)
                if len(weights) <= i:
                    weights.append(vt.from_numpy(rng.uniform(-1, 1, tuple(o.shape))))
                total = total + (o * weights[i]).sum()
            return total

        first = scalar()
        if not isinstance(first, vt.Tensor) or not first.requires_grad:
            continue
        checked += 1
        directions = [rng.uniform(-1, 1, tuple(x.shape)) for x in xs]
        along(scalar, xs, directions, 1e-6, 1e-6, f"{record.name}{sample} order 1")
        if not record.gradgrad:
            continue
        second = [vt.from_numpy(rng.uniform(-1, 1, tuple(x.shape))) for x in xs]

        def slope(xs: Any = xs, second: Any = second, scalar: Any = scalar) -> Any:
            grads = vt.autograd.grad(scalar(), xs, create_graph=True, allow_unused=True)
            total: Any = 0.0
            for g, v in zip(grads, second, strict=True):
                if g is not None:
                    total = total + (g * v).sum()
            return total

        s = slope()
        if isinstance(s, vt.Tensor) and s.requires_grad:
            along(slope, xs, directions, 1e-6, 2e-5, f"{record.name}{sample} order 2")
    assert checked, f"{record.name}: no sample could be differentiated; set grad=False if that is right"


def along(f: Any, xs: Any, directions: Any, eps: float, tol: float, what: str) -> None:
    """Compare the derivative of f along one direction with a central difference."""
    grads = vt.autograd.grad(f(), xs, allow_unused=True)
    got = sum(float((g.detach().numpy() * d).sum()) for g, d in zip(grads, directions, strict=True) if g is not None)
    kept = [x.detach().numpy().copy() for x in xs]

    def at(step: float) -> float:
        for x, k, d in zip(xs, kept, directions, strict=True):
            x.detach().numpy()[...] = k + step * d
        return float(f())

    want = (at(eps) - at(-eps)) / (2 * eps)
    at(0.0)
    scale = max(
        1.0, abs(want), max((float(np.abs(g.detach().numpy()).max()) for g in grads if g is not None), default=0.0)
    )
    assert abs(got - want) <= tol * scale * 10, f"{what}: derived {got}, central difference {want}"


def strange(a: np.ndarray, how: str) -> vt.Tensor:
    """The same values in memory that is permuted, sliced or shifted."""
    t = vt.from_numpy(np.array(a))
    if how == "permuted" and a.ndim >= 2:
        order = tuple(range(a.ndim))[::-1]
        return t.permute(order).contiguous().permute(order)
    if how == "sliced" and a.ndim >= 1:
        shape = (*a.shape[:-1], 2 * a.shape[-1] + 1)
        room = vt.zeros(shape, dtype=t.dtype)
        window = room[..., 1::2]
        window.copy_(t)
        return window
    if how == "shifted":
        room = vt.zeros(a.size + 3, dtype=t.dtype)
        room[3:].copy_(t.reshape(-1))
        return room[3:].view(a.shape)
    return t


@each
@pytest.mark.parametrize("how", ["permuted", "sliced", "shifted"])
def test_memory_layout_does_not_change_values(record: Record, how: str) -> None:
    if record.random or not record.layouts:
        pytest.skip("random result, or defined by the layout")
    fn = record.resolve(vt)
    dtype = dtypes_of(record)[0]
    for sample in record.samples:
        args, kwargs = arrays(record, sample, dtype)
        want = outputs(fn(*tensors(args), **tensors(kwargs)))
        odd = transform((args, kwargs), lambda a: strange(a, how), np.ndarray)
        got = outputs(fn(*odd[0], **odd[1]))
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            close(record, dtype, g.resolve_conj().numpy(), w.resolve_conj().numpy(), f"{record.name}{sample} {how}")


@each
def test_expanded_inputs_give_the_same_as_copies(record: Record) -> None:
    if record.random or not record.layouts or record.name.endswith("_"):
        pytest.skip("random result, writes its input, or defined by the layout")
    fn = record.resolve(vt)
    dtype = dtypes_of(record)[0]
    for sample in record.samples:
        args, kwargs = arrays(record, sample, dtype)
        if not args or not isinstance(args[0], np.ndarray) or args[0].ndim == 0 or args[0].size == 0:
            continue
        row = vt.from_numpy(np.array(args[0][:1]))
        stretched = row.expand(args[0].shape)
        try:
            want = outputs(
                fn(stretched.clone(memory_format=vt.contiguous_format), *tensors(args[1:]), **tensors(kwargs))
            )
        except RuntimeError:
            continue  # a stretched input may be outside the operator's domain (singular, say)
        got = outputs(fn(stretched, *tensors(args[1:]), **tensors(kwargs)))
        for g, w in zip(got, want, strict=True):
            close(record, dtype, g.resolve_conj().numpy(), w.resolve_conj().numpy(), f"{record.name}{sample} expanded")


@each
def test_wrong_arguments_raise_the_right_error(record: Record) -> None:
    if not record.errors:
        pytest.skip("no error cases")
    fn = record.resolve(vt)
    for sample, kind in record.errors:
        args, kwargs = arrays(record, sample, dtypes_of(record)[0])
        with pytest.raises(kind):
            fn(*tensors(args), **tensors(kwargs))


@each
def test_in_place_form_agrees_with_the_plain_one(record: Record) -> None:
    method = record.name.rsplit(".", 1)[-1] + "_"
    if not record.inplace or record.random or not hasattr(vt.Tensor, method):
        pytest.skip("no in-place form")
    fn = record.resolve(vt)
    dtype = dtypes_of(record)[0]
    for sample in record.samples:
        args, kwargs = arrays(record, sample, dtype)
        if not args or not isinstance(args[0], np.ndarray):
            continue
        v_args, v_kwargs = tensors((args, kwargs))
        want = fn(*v_args, **v_kwargs)
        if not isinstance(want, vt.Tensor) or want.shape != v_args[0].shape or want.dtype != v_args[0].dtype:
            continue
        x = tensors((args,))[0][0]
        before = x._version
        same = getattr(x, method)(*v_args[1:], **v_kwargs)
        assert same is x
        assert x._version > before
        close(record, dtype, x.numpy(), want.numpy(), f"{record.name}_{sample}")


@each
def test_out_form_writes_into_the_given_tensor(record: Record) -> None:
    import inspect

    fn = record.resolve(vt)
    try:
        accepts = "out" in inspect.signature(fn).parameters
    except (TypeError, ValueError):
        accepts = False
    if not record.out or record.random or not accepts:
        pytest.skip("no out= form")
    dtype = dtypes_of(record)[0]
    for sample in record.samples:
        args, kwargs = tensors(arrays(record, sample, dtype))
        want = fn(*args, **kwargs)
        if isinstance(want, vt.Tensor):
            out = vt.empty(0, dtype=want.dtype)
            got = fn(*args, **kwargs, out=out)
            assert got is out
            close(record, dtype, out.numpy(), want.numpy(), f"{record.name}{sample} out=")
