"""Views are views exactly where torch's are: memory, strides, offsets, gradients through them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import votive as vt

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

LAYOUTS = {
    "row-major": "arange(24.0).view(2, 3, 4)",
    "transposed": "arange(24.0).view(4, 3, 2).transpose(0, 2)",
    "permuted": "arange(24.0).view(3, 4, 2).permute(2, 0, 1)",
    "sliced": "arange(120.0).view(4, 5, 6)[1:4:2, 1:4, ::2].narrow(2, 0, 2)",
    "shifted": "arange(30.0)[6:].view(2, 3, 4)",
    "stretched": "arange(4.0).expand(2, 3, 4)",
    "half stretched": "arange(6.0).view(2, 3, 1).expand(2, 3, 4)",
    "ones": "arange(4.0).view(1, 4, 1)",
    "column": "arange(8.0).view(4, 2)[:, 1:]",
    "matrix": "arange(6.0).view(2, 3)",
    "square, transposed": "arange(9.0).view(3, 3).t()",
    "vector": "arange(12.0)",
    "every third": "arange(12.0)[1::3]",
    "number": "arange(3.0)[1]",
    "empty": "arange(0.0).view(2, 0, 3)",
    "empty slice": "arange(6.0).view(2, 3)[:, 3:]",
    "channels last": "arange(120.0).view(2, 3, 4, 5).contiguous(memory_format=lib.channels_last)",
    "images": "arange(120.0).view(2, 3, 4, 5)",
}

EXPRESSIONS = [
    "x.view(-1)", "x.view(x.shape)", "x.view(6, 4)", "x.view(2, 12)", "x.view(4, 3, 2)",
    "x.view(1, *x.shape, 1)", "x.view_as(x)", "x.view(lib.int32)", "x.view(lib.float16)",
    "x.view(lib.float64)", "x.view(lib.complex64)", "x.reshape(-1)", "x.reshape(x.shape)",
    "x.reshape(6, 4)", "x.reshape(3, 8)", "x.reshape(2, 3, 2, 2)", "x.reshape(4, 6)",
    "x.reshape_as(x)", "x.flatten()", "x.flatten(0, 1)", "x.flatten(1)", "x.flatten(0, 0)",
    "x.ravel()", "x.unflatten(-1, (2, -1))", "x.unflatten(0, (x.size(0), 1))",
    "x.transpose(0, 1)", "x.transpose(0, -1)", "x.swapaxes(0, 1)", "x.swapdims(-1, -2)", "x.t()",
    "x.T", "x.mT", "x.H", "x.mH", "x.adjoint()", "x.permute(2, 0, 1)", "x.permute(1, 0)",
    "x.movedim(0, -1)", "x.movedim((0, 1), (1, 0))", "x.squeeze()", "x.squeeze(0)",
    "x.squeeze(-1)", "x.squeeze((0, -1))", "x.unsqueeze(0)", "x.unsqueeze(1)", "x.unsqueeze(-1)",
    "x.expand(2, *x.shape)", "x.expand(1, *x.shape)", "x.expand(1, 1, *x.shape)",
    "x.expand(3, 1, *x.shape)", "x.expand(-1, 4, 2)", "x.expand(x.shape)", "x.expand_as(x)",
    "lib.broadcast_to(x, (2, *x.shape))", "lib.broadcast_tensors(x, x)",
    "x.select(0, 0)", "x.select(-1, -1)", "x.select(1, 1)", "x.narrow(0, 0, 1)",
    "x.narrow(-1, 1, 1)", "x.narrow(0, -1, 1)", "x[0]", "x[1:]", "x[..., ::2]", "x[..., None]",
    "x.split(1)", "x.split(2, -1)", "x.split([1, x.size(0) - 1])", "x.split_with_sizes([1, 1])",
    "x.chunk(2)", "x.chunk(3, -1)", "x.tensor_split(2)", "x.tensor_split((1,), -1)", "x.hsplit(1)",
    "x.vsplit(2)", "x.dsplit(2)", "x.unbind()", "x.unbind(-1)", "x.unfold(0, 1, 1)",
    "x.unfold(-1, 2, 1)", "x.unfold(1, 2, 2)", "x.as_strided((2, 2), (1, 2))",
    "x.as_strided((2, 2), (0, 1), 1)", "x.as_strided((), ())", "x.diagonal()", "x.diagonal(1)",
    "x.diagonal(-1)", "x.diagonal(0, -1, -2)", "x.diagonal(5)", "lib.atleast_1d(x)",
    "lib.atleast_2d(x)", "lib.atleast_3d(x)", "x.contiguous()", "x.detach()",
    "lib.meshgrid(x, x, indexing='ij')", "lib.meshgrid(x, x, indexing='xy')",
    # These copy, always or where memory does not allow a view.
    "x.clone()", "x.clone(memory_format=lib.contiguous_format)", "x.to(lib.float32)",
    "x.to(lib.float64)", "x.to(lib.float32, copy=True)", "x.to('cpu')", "x.repeat(1, *x.shape)",
    "x.tile((1,))", "x.flip(0)", "x.flip(-1)", "x.fliplr()", "x.flipud()", "x.roll(1, 0)",
    "x.rot90()", "x.rot90(2)", "x.rot90(0)", "x.diag()", "x.diag_embed()", "x.diagflat()",
    "x.tril()", "x.narrow_copy(0, 0, 1)", "lib.diagonal_copy(x)", "lib.cat([x])", "lib.stack([x])",
    "lib.zeros_like(x)", "lib.ones_like(x, dtype=lib.int64)", "lib.empty_like(x)",
    "lib.full_like(x, 2, memory_format=lib.contiguous_format)", "x.new_zeros(x.shape)",
    "x.repeat_interleave(2, 0)", "x.type(lib.float32)", "x.type_as(x)", "lib.fill(x, 3)",
]  # fmt: skip


def build(lib: Any, layout: str) -> Any:
    scope = {"lib": lib, "arange": lib.arange}
    return eval(LAYOUTS[layout], scope)


def parts(result: Any, lib: Any) -> list[Any]:
    return [result] if isinstance(result, lib.Tensor) else list(result)


def outcome(lib: Any, layout: str, expression: str) -> Any:
    """What an expression gives: geometry and sharing of each tensor, or the kind of error."""
    x = build(lib, layout)
    try:
        made = parts(eval(expression, {"lib": lib, "x": x}), lib)
    except (RuntimeError, IndexError, TypeError, ValueError) as e:
        kinds = (IndexError, TypeError, ValueError, RuntimeError)
        return next(k.__name__ for k in kinds if isinstance(e, k))
    home = x.untyped_storage().data_ptr()
    return [
        {
            "shape": tuple(t.shape),
            # Without elements there is nothing to step over.
            "strides": tuple(t.stride()) if t.numel() else None,
            "offset": t.storage_offset() if shares(t, home) else 0,
            "shares": shares(t, home),
            "dtype": str(t.dtype).rpartition(".")[2],
            "is x": t is x,
        }
        for t in made
    ]


def shares(t: Any, home: int) -> bool:
    # Without elements there is no memory to share.
    return t.numel() > 0 and t.untyped_storage().data_ptr() == home


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_geometry_and_sharing_agree_with_torch(expression: str) -> None:
    for layout in LAYOUTS:
        want, got = outcome(torch, layout, expression), outcome(vt, layout, expression)
        assert got == want, f"{layout}: {expression}"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_hold_the_same_values_and_geometry(layout: str) -> None:
    x, t = build(vt, layout), build(torch, layout)
    assert (tuple(x.stride()), x.storage_offset()) == (t.stride(), t.storage_offset())
    np.testing.assert_array_equal(x.numpy(), t.numpy())


WRITES = [
    "x.view(-1)[3:5].mul_(2)",
    "x.transpose(0, 1)[1].fill_(7)",
    "x.select(-1, 0).zero_()",
    "x.unbind()[1].add_(1)",
    "x.split(1)[0].copy_(lib.tensor(5.0))",
    "x.diagonal().fill_(9)",
    "x.unsqueeze(0)[0, 1].neg_()",
    "x.narrow(0, 1, 1).copy_(x.narrow(0, 0, 1).clone())",
    "x.permute(1, 0)[0].mul_(3)",
    "x.fill_diagonal_(4)",
    "x.as_strided((2,), (2,), 1).zero_()",
    "x.expand(1, *x.shape)[0].add_(1)",
    "x.chunk(2, 1)[1].fill_(2)",
    "x.unfold(0, 1, 2).mul_(5)",
    "x.t().tril_()",
    "x.squeeze().triu_(1)",
    "x.swapaxes(0, 1).unflatten(1, (1, -1)).zero_()",
]


@pytest.mark.parametrize("program", WRITES)
def test_writing_through_a_view_changes_its_base_as_in_torch(program: str) -> None:
    x, t = vt.arange(12.0).view(3, 4), torch.arange(12.0).view(3, 4)
    eval(program, {"x": x, "lib": vt})
    eval(program, {"x": t, "lib": torch})
    np.testing.assert_array_equal(x.numpy(), t.numpy())


@pytest.mark.parametrize("program", [p for p in WRITES if "unbind" not in p and "split" not in p and "chunk" not in p])
def test_gradients_flow_through_writes_into_views_as_in_torch(program: str) -> None:
    got = []
    for lib in (vt, torch):
        leaf = lib.arange(12.0).view(3, 4).clone().requires_grad_()
        x = leaf * 1
        eval(program, {"x": x, "lib": lib})
        weight = lib.arange(1.0, 13.0).view(3, 4)
        (g,) = lib.autograd.grad((x * x * weight).sum(), leaf)
        got.append(g.numpy())
    np.testing.assert_allclose(got[0], got[1], rtol=1e-6)


OWN_WINDOW = [
    "x.t_()",
    "x.transpose_(0, 1)",
    "x.swapaxes_(0, 1)",
    "x.swapdims_(0, 1)",
    "x.unsqueeze_(1)",
    "x.unsqueeze_(0).squeeze_(0)",
    "x.unsqueeze_(0).squeeze_()",
    "x.as_strided_((2, 3), (1, 2), 1)",
]


@pytest.mark.parametrize("program", OWN_WINDOW)
@pytest.mark.parametrize("start", ["leaf * 1", "(leaf * 1)[1:]", "(leaf * 1).t()"])
def test_in_place_forms_of_views_change_the_tensor_itself(program: str, start: str) -> None:
    seen = []
    for lib in (vt, torch):
        leaf = lib.arange(12.0).view(3, 4).clone().requires_grad_()
        x = eval(start, {"leaf": leaf})
        before = x.untyped_storage().data_ptr(), x._version
        assert eval(program, {"x": x}) is x
        assert x.untyped_storage().data_ptr() == before[0]
        assert x._version > before[1]
        weight = lib.arange(1.0, x.numel() + 1).view(x.shape)
        (g,) = lib.autograd.grad((x * x * weight).sum(), leaf)
        seen.append((tuple(x.shape), tuple(x.stride()), x.storage_offset(), g.numpy().tolist()))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("program", OWN_WINDOW[:-1])
def test_views_made_before_their_base_changed_its_window_keep_their_history(program: str) -> None:
    seen = []
    for lib in (vt, torch):
        leaf = lib.arange(12.0).view(3, 4).clone().requires_grad_()
        x = leaf * 1
        row = x[1]
        eval(program, {"x": x})
        row.mul_(3)
        (g,) = lib.autograd.grad((row * row).sum() + x.sum(), leaf)
        seen.append((row.tolist(), x.tolist(), g.numpy().tolist()))
    assert seen[0] == seen[1]


def test_a_leaf_that_requires_grad_keeps_its_window() -> None:
    leaf = vt.zeros(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.t_()
    with vt.no_grad():
        leaf.t_()
    assert leaf.shape == (3, 2)
    assert leaf.is_leaf


def test_a_value_saved_for_backward_cannot_change_its_window() -> None:
    x = vt.ones(2, 3, requires_grad=True) * 1
    y = x * x
    x.t_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_resizing_keeps_elements_in_storage_order_and_takes_views_along() -> None:
    x = vt.arange(6.0).view(2, 3)
    row = x[1]
    x.resize_(300)
    assert x[:6].tolist() == [0, 1, 2, 3, 4, 5]
    x[3] = 9
    assert row.tolist() == [9, 4, 5]
    x.resize_(2, 2)
    assert x.tolist() == [[0, 1], [2, 9]]
    assert x.untyped_storage() is row.untyped_storage()


def test_memory_of_others_is_not_resized() -> None:
    a = np.arange(3.0)
    t = vt.from_numpy(a)
    t.resize_(2)
    with pytest.raises(RuntimeError, match="not resizable"):
        t.resize_(4)


def test_as_strided_counts_each_way_to_a_shared_element() -> None:
    seen = []
    for lib in (vt, torch):
        base = lib.arange(4.0).requires_grad_()
        stretched = (base * 1).expand(3, 4)
        # The input overlaps itself, the window too: each element is reached several ways.
        window = stretched.as_strided((2, 3), (1, 1))
        (g,) = lib.autograd.grad((window * lib.arange(6.0).view(2, 3)).sum(), stretched)
        seen.append(g.numpy())
    np.testing.assert_allclose(seen[0], seen[1], rtol=1e-6)


def test_as_strided_is_differentiable_twice_on_overlapping_memory() -> None:
    x = vt.arange(1.0, 6.0, dtype=vt.float64).requires_grad_()
    f = lambda t: (t.expand(2, 5).as_strided((3, 3), (1, 1)) ** 3).sum()
    (g,) = vt.autograd.grad(f(x), x, create_graph=True)
    (h,) = vt.autograd.grad((g * g).sum(), x)
    counts = np.array([1, 2, 3, 2, 1.0])
    v = x.detach().numpy()
    np.testing.assert_allclose(g.detach().numpy(), 3 * counts * v**2)
    np.testing.assert_allclose(h.numpy(), 2 * (3 * counts * v**2) * 6 * counts * v)


def test_detaching_shares_memory_without_history() -> None:
    x = vt.ones(2, requires_grad=True) * 2
    d = x.detach()
    d[0] = 5
    assert x.tolist() == [5, 2]
    assert not d.requires_grad
    assert not d._is_view()


@pytest.mark.parametrize(
    "cut", ["x.unbind()", "x.split(1)", "x.chunk(3)", "x.tensor_split(3)", "x.split([1, 0, 2])", "tuple(x)"]
)
def test_pieces_of_a_tensor_share_one_node(cut: str) -> None:
    x = vt.arange(12.0).view(3, 4).requires_grad_()
    pieces = eval(cut, {"x": x * 1})
    assert len({id(p.grad_fn) for p in pieces}) == 1
    (g,) = vt.autograd.grad((pieces[0] * pieces[0]).sum() + pieces[-1].sum(), x)
    want = np.zeros((3, 4))
    want[0] = 2 * np.arange(4)
    want[2] = 1
    if cut == "x.split([1, 0, 2])":
        want[1] = 1
    np.testing.assert_allclose(g.numpy(), want)


def test_a_piece_may_be_written_in_place_although_torch_refuses() -> None:
    x = vt.ones(3, 2, requires_grad=True)
    y = x * 1
    first, second, _ = y.unbind()
    first.mul_(3)
    second.copy_(first)
    (g,) = vt.autograd.grad((y * y).sum(), x)
    # Rows 0 and 1 are both 3·x[0]: d/dx of 2·(3x)² is 36x; row 1 of x no longer counts.
    np.testing.assert_allclose(g.numpy(), [[36, 36], [0, 0], [2, 2]])


def steps(shape: tuple[int, ...]) -> list[str]:
    """Views that a tensor of this shape has, whatever its layout."""
    n = len(shape)
    found = ["unsqueeze(0)", f"unsqueeze({n})", "squeeze()", "reshape(-1)", "view_as(x)"]
    if n == 1:
        found.append(f"expand(2, {shape[0]})")
    for d, size in enumerate(shape):
        found += [f"transpose({d}, -1)", f"movedim({d}, 0)"]
        if size:
            found += [f"select({d}, {size - 1})", f"narrow({d}, {size // 2}, {size - size // 2})"]
            found += [f"unfold({d}, {size - size // 2}, 1)", f"split(1, {d})[0]", f"unbind({d})[-1]"]
        if size == 1:
            found.append(f"expand({', '.join('3' if i == d else '-1' for i in range(n))})")
        if size == 4:
            found.append(f"unflatten({d}, (2, 2))")
    if n >= 2:
        found += ["diagonal()", "diagonal(1, -1, 0)", "flatten(0, 1)", "mT"]
    return found


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_chains_of_views_agree_with_torch_in_geometry_and_gradient(data: st.DataObject) -> None:
    leaf, other = vt.arange(24.0), torch.arange(24.0)
    leaf.requires_grad_(), other.requires_grad_()
    x, t = (leaf * 1).view(2, 3, 4), (other * 1).view(2, 3, 4)
    chain = []
    for _ in range(data.draw(st.integers(1, 6))):
        chain.append(data.draw(st.sampled_from(steps(tuple(t.shape)))))
        x, t = (eval(f"v.{chain[-1]}", {"v": v, "x": v}) for v in (x, t))
        assert tuple(x.shape) == tuple(t.shape), chain
        if x.ndim > 6:
            break
    if t.numel():
        assert (tuple(x.stride()), x.storage_offset()) == (t.stride(), t.storage_offset()), chain
    np.testing.assert_array_equal(x.detach().numpy(), t.detach().numpy(), err_msg=str(chain))
    (g,) = vt.autograd.grad((x * x).sum(), leaf)
    (want,) = torch.autograd.grad((t * t).sum(), other)
    np.testing.assert_allclose(g.numpy(), want.numpy(), err_msg=str(chain))
