"""Sparse tensors against torch: every call on every layout, with values, layouts, dtypes, gradients and text."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import votive

from .compare import Call, attempt, same, sparse_array

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def repeated(x: Any) -> Any:
    """A COO tensor with each index twice."""
    library: Any = votive if isinstance(x, votive.Tensor) else torch
    s = x.to_sparse()
    at = library.cat([s._indices(), s._indices().flip(1)], 1)
    return library.sparse_coo_tensor(at, library.cat([s._values() * 0.25, s._values().flip(0) * 0.75]), tuple(x.shape))


LAYOUTS: dict[str, Call] = {
    "coo": lambda x: x.to_sparse(),
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
    "bsr": lambda x: x.to_sparse_bsr((2, 2)),
    "bsc": lambda x: x.to_sparse_bsc((2, 2)),
    "repeated": repeated,
    "hybrid": lambda x: x.to_sparse(1),
}
UNARY = (
    "abs asin asinh atan ceil deg2rad erf expm1 floor frac isinf isnan isneginf isposinf log1p neg positive rad2deg "
    "relu round sgn sign signbit sin sinh sqrt square tan tanh trunc"
)
CALLS: dict[str, Call] = {
    "x + x": lambda t, x, d: x + x,
    "d + x": lambda t, x, d: d + x,
    "d - x": lambda t, x, d: d - x,
    "x * x": lambda t, x, d: x * x,
    "x * d": lambda t, x, d: x * d,
    "d * x": lambda t, x, d: d * x,
    "2 * x": lambda t, x, d: 2 * x,
    "x * row": lambda t, x, d: x * d[0],
    "x / 2": lambda t, x, d: x / 2,
    "x // 2": lambda t, x, d: x // 2,
    "x ** 2": lambda t, x, d: x**2,
    "add alpha": lambda t, x, d: t.add(d, x, alpha=2),
    "sum": lambda t, x, d: x.sum(),
    "sum 0": lambda t, x, d: x.sum(0),
    "sum 1 kept": lambda t, x, d: x.sum(1, keepdim=True),
    "sum both": lambda t, x, d: x.sum((0, 1)),
    "sum float64": lambda t, x, d: x.sum(dtype=t.float64),
    "sparse.sum": lambda t, x, d: t.sparse.sum(x),
    "sparse.sum 0": lambda t, x, d: t.sparse.sum(x, 0),
    "softmax 0": lambda t, x, d: t.sparse.softmax(x, 0),
    "softmax 1": lambda t, x, d: t.sparse.softmax(x, 1),
    "log_softmax": lambda t, x, d: t.sparse.log_softmax(x, 1, dtype=t.float64),
    "norm": lambda t, x, d: x.norm(),
    "any": lambda t, x, d: x.detach().any(),
    "t": lambda t, x, d: x.t(),
    "permute": lambda t, x, d: x.permute(1, 0),
    "x[1]": lambda t, x, d: x[1],
    "x[:, 1]": lambda t, x, d: x[:, 1],
    "x[1, 2]": lambda t, x, d: x[1, 2],
    "narrow_copy": lambda t, x, d: x.narrow_copy(0, 1, 2),
    "index_select": lambda t, x, d: x.index_select(1, t.tensor([0, 2, 0])),
    "cat": lambda t, x, d: t.cat([x, x * 2], 1),
    "stack": lambda t, x, d: t.stack([x, x], -1),
    "unsqueeze": lambda t, x, d: x.unsqueeze(1),
    "unbind": lambda t, x, d: x.unbind(1),
    "x @ d": lambda t, x, d: x @ d.t(),
    "d @ x": lambda t, x, d: d.t() @ x,
    "x @ x": lambda t, x, d: x.mm(x.t()),
    "x @ v": lambda t, x, d: x @ d[0],
    "v @ x": lambda t, x, d: d[:, 0] @ x,
    "addmm": lambda t, x, d: t.addmm(t.ones(4, 4), x, d.t(), beta=2, alpha=3),
    "sparse.mm": lambda t, x, d: t.sparse.mm(x, d.t()),
    "sparse.mm x": lambda t, x, d: t.sparse.mm(x, x.t()),
    "sparse.mm amax": lambda t, x, d: t.sparse.mm(x, d.t().contiguous(), "amax"),
    "sparse.addmm": lambda t, x, d: t.sparse.addmm(t.ones(4, 4), x, d.t(), beta=2, alpha=3),
    "sampled_addmm": lambda t, x, d: t.sparse.sampled_addmm(x, d, t.ones(6, 6)),
    "smm": lambda t, x, d: t.smm(x, d.t()),
    "hspmm": lambda t, x, d: t.hspmm(x, d.t()),
    "sspaddmm": lambda t, x, d: t.sspaddmm(t.eye(4).to_sparse(), x, d.t(), beta=2, alpha=3),
    "linear": lambda t, x, d: t.nn.functional.linear(d, x),
    "clone": lambda t, x, d: x.clone(),
    "double": lambda t, x, d: x.double(),
    "zeros_like": lambda t, x, d: t.zeros_like(x),
    "mul_": lambda t, x, d: x.clone().mul_(2),
    "add_": lambda t, x, d: d.clone().add_(x),
    "zero_": lambda t, x, d: x.detach().clone().zero_(),
    "sparse_mask": lambda t, x, d: d.sparse_mask(x.detach().coalesce() if x.is_sparse else x.detach()),
    "to_dense": lambda t, x, d: x.to_dense(),
    "to_dense whole": lambda t, x, d: x.to_dense(masked_grad=False),
    "to coo": lambda t, x, d: x.to_sparse(),
    "to csr": lambda t, x, d: x.to_sparse_csr(),
    "to csc": lambda t, x, d: x.to_sparse_csc(),
    "to bsr": lambda t, x, d: x.to_sparse_bsr((2, 3)),
    "values": lambda t, x, d: (x.coalesce() if x.is_sparse else x).values().sum() * 2,
    "dims": lambda t, x, d: (x.sparse_dim(), x.dense_dim(), x._nnz(), x.is_sparse, x.is_sparse_csr, x.numel()),
}


def unary(name: str) -> Call:
    return lambda t, x, d: getattr(t, name)(x)


CALLS |= {name: unary(name) for name in UNARY.split()}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_calls_on_a_layout_give_what_torch_gives(layout: str) -> None:
    rng = np.random.default_rng(0)
    for name, call in CALLS.items():
        arrays = [sparse_array(rng, 4, 6), sparse_array(rng, 4, 6, density=1)]
        same(f"{layout}: {name}", call, arrays, [LAYOUTS[layout], None])


@pytest.mark.parametrize("dtype", ["float64", "complex64", "int32", "bool"])
def test_other_dtypes(dtype: str) -> None:
    rng = np.random.default_rng(1)
    names = (
        "x + x",
        "d + x",
        "x * x",
        "x * d",
        "sum",
        "sum 0",
        "x @ d",
        "to_dense",
        "to csc",
        "to coo",
        "t",
        "abs",
        "sgn",
    )
    for layout in ("coo", "csr", "repeated", "bsr"):
        for name in names:
            arrays = [(sparse_array(rng, 4, 6, density=k) * 3).astype(dtype) for k in (0.4, 1)]
            same(f"{dtype} {layout}: {name}", CALLS[name], arrays, [LAYOUTS[layout], None])


def test_tensors_without_elements() -> None:
    names = ("x + x", "d + x", "x * x", "x * d", "sum", "sum 0", "to_dense", "to csr", "to csc", "to coo", "t", "sin")
    for shape in ((0, 3), (3, 0), (4, 6)):
        for layout in ("coo", "csr", "csc"):
            for name in names:
                arrays = [np.zeros(shape, np.float32)] * 2
                same(f"{shape} {layout}: {name}", CALLS[name], arrays, [LAYOUTS[layout], None])


def test_three_dimensions_and_batches() -> None:
    rng = np.random.default_rng(2)
    calls: dict[str, Call] = {
        "permute": lambda t, x: x.permute(2, 0, 1),
        "sum": lambda t, x: x.sum((0, 2)),
        "softmax": lambda t, x: t.sparse.softmax(x, 1),
        "select": lambda t, x: x[..., 1],
        "cat": lambda t, x: t.cat([x, x], 2),
        "bmm": lambda t, x: t.bmm(x, t.ones(2, 4, 3)),
        "csr": lambda t, x: x.to_sparse_csr(),
        "dense": lambda t, x: x.to_dense(),
        "transpose": lambda t, x: x.transpose(1, 2),
        "double": lambda t, x: x * 2,
    }
    array = sparse_array(rng, 2, 3, 4)
    batch = np.zeros((2, 3, 4), np.float32)
    batch[:, [0, 1, 2], [1, 3, 0]] = rng.standard_normal((2, 3))
    for name, call in calls.items():
        same(name, call, [array], [lambda x: x.to_sparse()])
        same(f"hybrid {name}", call, [array], [lambda x: x.to_sparse(2)])
        same(f"csr {name}", call, [batch], [lambda x: x.to_sparse_csr()])
        same(f"csc {name}", call, [batch], [lambda x: x.to_sparse_csc()])


def test_they_print_as_in_torch() -> None:
    rng = np.random.default_rng(3)
    for layout, convert in LAYOUTS.items():
        for array in (
            sparse_array(rng, 4, 6),
            np.zeros((2, 4), np.float32),
            sparse_array(rng, 4, 6).astype(np.float64),
        ):
            theirs, ours = convert(torch.tensor(array)), convert(votive.tensor(array))
            assert repr(ours) == repr(theirs).replace("torch.", "votive."), layout
    leaf = torch.eye(2).to_sparse().requires_grad_()
    assert repr(votive.eye(2).to_sparse().requires_grad_()) == repr(leaf).replace("torch.", "votive.")


ERRORS: dict[str, Call] = {
    "lengths": lambda t: t.sparse_coo_tensor([[0, 1]], [1.0], (2,)),
    "dimensions": lambda t: t.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2, 3)),
    "one row": lambda t: t.sparse_coo_tensor(t.tensor([0, 1]), [1.0, 2.0], (2,)),
    "values": lambda t: t.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (2,)).values(),
    "sparse_dim": lambda t: t.ones(2, 2).to_sparse(5),
    "blocks": lambda t: t.ones(3, 3).to_sparse_bsr((2, 2)),
    "batches": lambda t: t.tensor([[[1.0, 0], [0, 0]], [[1.0, 1], [0, 0]]]).to_sparse_csr(),
    "product": lambda t: t.eye(3).to_sparse() @ t.ones(2, 2),
    "dtypes": lambda t: t.eye(3).to_sparse() @ t.ones(3, 2).double(),
    "sum": lambda t: t.eye(3).to_sparse() + t.eye(2).to_sparse(),
    "dense": lambda t: t.eye(3).to_sparse() + t.eye(3),
    "shrink": lambda t: t.eye(3).to_sparse().sparse_resize_((2, 2), 2, 0),
    "index": lambda t: t.eye(3).to_sparse()[5],
    "exp": lambda t: t.eye(3).to_sparse().exp(),
    "numpy": lambda t: t.eye(3).to_sparse().numpy(),
    "crow": lambda t: t.eye(3).to_sparse_csc().crow_indices(),
    "coalesce": lambda t: t.eye(3).to_sparse_csr().coalesce(),
    "integers": lambda t: t.eye(3).int().to_sparse().requires_grad_(),
    "division": lambda t: t.eye(3).to_sparse() / t.eye(3),
    "assign": lambda t: t.eye(3).to_sparse().__setitem__(0, 1.0),
    "diagonals": lambda t: t.sparse.spdiags(t.ones(2, 3), t.tensor([0, 0]), (3, 3)),
}


def test_what_torch_refuses_is_refused_with_the_same_type() -> None:
    for name, call in ERRORS.items():
        _, theirs = attempt(call, torch)
        _, ours = attempt(call, votive)
        assert theirs is not None, name
        assert isinstance(ours, type(theirs)), f"{name}: {ours!r} instead of {theirs!r}"


def test_invariants_are_checked_as_in_torch() -> None:
    for starts in ([0, 1, 2], [0, 1, 3], [1, 1, 2], [0, 2, 1]):
        for plain in ([0, 1], [0, 5], [-1, 0], [0, 0]):

            def make(t: Any, starts: list[int] = starts, plain: list[int] = plain) -> Any:
                return t.sparse_csr_tensor(starts, plain, [1.0, 2.0], (2, 2), check_invariants=True)

            theirs, ours = attempt(make, torch)[1], attempt(make, votive)[1]
            assert (theirs is None) == (ours is None), (starts, plain)


def test_diagonals() -> None:
    rng = np.random.default_rng(4)
    for offsets in ([0], [1], [-2], [0, 1, -1]):
        for layout in (None, "sparse_csr", "sparse_csc"):

            def call(t: Any, x: Any, offsets: list[int] = offsets, layout: str | None = layout) -> Any:
                return t.sparse.spdiags(x, t.tensor(offsets), (4, 5), layout=layout and getattr(t, layout))

            same(f"{offsets} {layout}", call, [sparse_array(rng, len(offsets), 5, density=1)], [None])


def test_a_sum_of_gradients_is_as_in_torch() -> None:
    with warnings.catch_warnings():
        for library in (torch, votive):
            x = library.eye(3).to_sparse().requires_grad_()
            library.sparse.mm(x, library.ones(3, 2)).sum().backward()
            library.sparse.mm(x, library.ones(3, 2)).sum().backward()
            assert x.grad.is_sparse
            assert x.grad.to_dense().tolist() == [[4.0, 0, 0], [0, 4.0, 0], [0, 0, 4.0]]
            x.to_dense(masked_grad=False).sum().backward()
            x.sum().backward()
            assert float(x.grad.sum()) == 12 + 9 + 9


def test_masked_reductions_take_sparse_tensors() -> None:
    rng = np.random.default_rng(5)
    array, mask = sparse_array(rng, 3, 5), rng.random((3, 5)) < 0.6
    for name in ("sum", "prod", "amax", "amin"):
        for dim, keepdim in ((None, False), (0, True), (1, True), (1, False)):

            def call(t: Any, x: Any, m: Any, name: str = name, dim: Any = dim, keepdim: bool = keepdim) -> Any:
                m = m if x.is_sparse else m.to_dense().to_sparse_csr()
                return getattr(t.masked, name)(x.detach(), dim, keepdim=keepdim, mask=m)

            for layout in ("coo", "csr"):
                same(f"{name} {dim} {layout}", call, [array, mask], [LAYOUTS[layout], LAYOUTS["coo"]])
