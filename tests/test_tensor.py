"""Tensor as an object: values out and in, copying, pickling, Python protocols, errors."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest

import votive as vt


def test_numpy_and_tensor_share_memory_both_ways() -> None:
    t = vt.zeros(3)
    a = t.numpy()
    a[0] = 5
    assert t.tolist() == [5.0, 0.0, 0.0]
    t[1] = 7
    assert a.tolist() == [5.0, 7.0, 0.0]


def test_numpy_of_a_tensor_that_requires_grad_is_refused_unless_forced() -> None:
    t = vt.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="detach"):
        t.numpy()
    assert t.numpy(force=True).tolist() == [1.0, 1.0]


def test_array_protocol_serves_numpy_functions() -> None:
    t = vt.tensor([1.0, 4.0])
    assert np.sqrt(np.asarray(t)).tolist() == [1.0, 2.0]
    assert np.asarray(t, dtype=np.int32).dtype == np.int32


def test_dlpack_shares_memory_with_numpy_both_ways() -> None:
    t = vt.arange(4, dtype=vt.float32)
    a = np.from_dlpack(t)
    t[0] = 9
    assert a[0] == 9
    b = np.arange(3.0)
    u = vt.from_dlpack(b)
    b[0] = 5
    assert u.tolist() == [5.0, 1.0, 2.0]


@pytest.mark.parity
def test_dlpack_shares_memory_with_torch_both_ways() -> None:
    torch = pytest.importorskip("torch")
    t = vt.arange(6, dtype=vt.float32).view(2, 3).t()
    u = torch.from_dlpack(t)
    assert u.stride() == t.stride()
    u[0, 0] = 7
    assert t[0, 0].item() == 7
    v = vt.from_dlpack(torch.arange(3))
    assert v.tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "int8", "bool", "complex64"])
def test_pickling_keeps_values_layout_and_flags(dtype: str) -> None:
    t = vt.tensor([[1, 0, 1], [0, 1, 1]]).to(getattr(vt, dtype)).t()
    back = pickle.loads(pickle.dumps(t))
    assert back.dtype is t.dtype
    assert back.stride() == t.stride()
    assert vt.equal(back, t)
    p = vt.ones(2, requires_grad=True)
    assert pickle.loads(pickle.dumps(p)).requires_grad


def test_a_tensor_with_history_cannot_be_pickled_or_deep_copied() -> None:
    y = vt.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="detach"):
        pickle.dump(y, io.BytesIO())
    with pytest.raises(RuntimeError, match="detach"):
        copy.deepcopy(y)


def test_deepcopy_keeps_shared_storage_shared_and_copies_grad() -> None:
    base = vt.zeros(4)
    a, b = copy.deepcopy([base, base[1:]])
    a[1] = 5
    assert b[0].item() == 5
    assert base[1].item() == 0
    p = vt.ones(2, requires_grad=True)
    (p * 3).sum().backward()
    q = copy.deepcopy(p)
    assert q.requires_grad
    assert q.is_leaf
    assert q.grad.tolist() == [3.0, 3.0]
    q.grad.zero_()
    assert p.grad.tolist() == [3.0, 3.0]


class Named(vt.Tensor):
    """A tensor of a class of one's own, with an attribute."""

    title = "none"


def test_tensors_of_other_classes_and_copies_have_all_that_the_original_has() -> None:
    x = Named([1.0, 2.0])
    x.requires_grad_()
    x.title = "two"
    for twin in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(twin) is Named
        assert (twin.title, twin.requires_grad, twin.tolist()) == ("two", True, [1.0, 2.0])
    assert copy.copy(x).data_ptr() == x.data_ptr()
    assert (x + x).requires_grad
    assert not (vt.ones(2) + 1).requires_grad


def test_a_parameter_without_a_shape_is_refused_by_every_way_of_a_call() -> None:
    lazy = vt.nn.parameter.UninitializedParameter()
    x = vt.ones(2)
    x + x  # a plan is there
    for call in (lambda: x + lazy, lambda: lazy + x, lambda: -lazy, lambda: lazy[0], lambda: vt.cat([x, lazy])):
        with pytest.raises(ValueError, match="uninitialized parameter"):
            call()
    twin = copy.copy(lazy)
    assert type(twin) is type(lazy)
    assert twin.requires_grad
    lazy.materialize((2,))
    assert type(lazy) is vt.nn.Parameter
    assert (x + lazy.detach().fill_(1)).tolist() == [2.0, 2.0]


def test_item_tolist_and_conversions() -> None:
    assert vt.tensor(3).item() == 3
    assert type(vt.tensor(3).item()) is int
    assert type(vt.tensor(True).item()) is bool
    assert vt.tensor([1.5]).to(vt.bfloat16).item() == 1.5
    assert float(vt.tensor(2)) == 2.0
    assert int(vt.tensor(2.7)) == 2
    assert complex(vt.tensor(1j)) == 1j
    assert [10, 20, 30][vt.tensor(1)] == 20
    with pytest.raises(RuntimeError):
        vt.tensor([1, 2]).item()
    with pytest.raises(TypeError):
        [1, 2][vt.tensor(1.0)]


def test_length_iteration_and_membership_follow_torch() -> None:
    t = vt.tensor([[1, 2], [3, 4]])
    assert len(t) == 2
    assert [r.tolist() for r in t] == [[1, 2], [3, 4]]
    assert 3 in t
    assert 9 not in t
    with pytest.raises(TypeError, match="0-d"):
        len(vt.tensor(1))
    with pytest.raises(TypeError, match="0-d"):
        iter(vt.tensor(1))


def test_truth_needs_exactly_one_value() -> None:
    assert vt.tensor([True])
    assert not vt.tensor(0.0)
    with pytest.raises(RuntimeError, match="more than one"):
        bool(vt.tensor([1, 2]))
    with pytest.raises(RuntimeError, match="no values"):
        bool(vt.tensor([]))


def test_operators_answer_not_implemented_to_strangers() -> None:
    class Stranger:
        def __radd__(self, other: object) -> str:
            return "theirs"

    assert vt.ones(2) + Stranger() == "theirs"
    with pytest.raises(TypeError):
        vt.ones(2) + "text"
    assert (vt.ones(2) == None) is False  # noqa: E711
    assert (vt.ones(2) != "text") is True


def test_reflected_and_in_place_operators() -> None:
    x = vt.tensor([2.0, 4.0])
    assert (1 - x).tolist() == [-1.0, -3.0]
    assert (8 / x).tolist() == [4.0, 2.0]
    assert (2**x).tolist() == [4.0, 16.0]
    assert (7 // x).tolist() == [3.0, 1.0]
    assert (7 % x).tolist() == [1.0, 3.0]
    y = x
    y += 1
    y *= 2
    y /= 4
    y -= 0.5
    assert y is x
    assert x.tolist() == [1.0, 2.0]
    i = vt.tensor([5, 6])
    i //= 2
    i <<= 1
    i |= 1
    i &= 5
    i ^= 2
    assert i.tolist() == [7, 7]
    assert (~vt.tensor([True, False])).tolist() == [False, True]
    assert (vt.ones(2, 3) @ vt.ones(3, 2)).tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_the_kind_of_result_must_fit_an_in_place_target() -> None:
    i = vt.tensor([1, 2])
    with pytest.raises(RuntimeError, match="can't be cast"):
        i.add_(0.5)
    with pytest.raises(RuntimeError, match="broadcast"):
        vt.ones(2).add_(vt.ones(3, 2))
    with pytest.raises(RuntimeError, match="single memory location"):
        vt.ones(1).expand(3).add_(1)


def test_out_is_resized_with_a_warning_when_it_held_something() -> None:
    out = vt.empty(0)
    assert vt.add(vt.ones(2), 1, out=out).tolist() == [2.0, 2.0]
    with pytest.warns(UserWarning, match="resized"):
        vt.add(vt.ones(3), 1, out=out)
    with pytest.raises(RuntimeError, match="can't be cast"):
        vt.add(vt.ones(2), 1, out=vt.empty(2, dtype=vt.int64))
    with pytest.raises(RuntimeError, match="differentiation"):
        vt.add(vt.ones(2, requires_grad=True), 1, out=vt.empty(2))


def test_the_names_of_numpy_are_accepted_as_torch_accepts_them() -> None:
    x = vt.arange(6.0).view(2, 3)
    assert x.sum(axis=1, keepdims=True).tolist() == [[3.0], [12.0]]
    assert vt.cat([x, x], axis=0).shape == (4, 3)
    assert x.cumsum(axis=0).tolist() == x.cumsum(0).tolist()
    assert x.max(axis=1).indices.tolist() == [2, 2]
    with pytest.raises(TypeError, match="dim"):
        x.cumsum()


def test_shape_queries() -> None:
    t = vt.zeros(2, 3, 4).transpose(0, 2)
    assert t.shape == (4, 3, 2)
    assert t.size(0) == 4
    assert t.size(-1) == 2
    assert t.stride() == (1, 4, 12)
    assert t.numel() == 24
    assert t.dim() == t.ndim == 3
    assert t.element_size() == 4
    assert not t.is_contiguous()
    assert t.contiguous().is_contiguous()
    assert t[1:].storage_offset() == 1
    with pytest.raises(IndexError):
        t.size(3)


def test_results_with_permuted_strides_can_be_viewed() -> None:
    x = vt.arange(24.0).view(1, 2, 3, 4).transpose(1, 2)
    y = vt.nn.functional.rms_norm(x, (4,))
    assert y.expand(1, 3, 2, 4)[0, 1].tolist() == y[0, 1].tolist()
    assert y.transpose(1, 2).reshape(-1).shape == (24,)


def test_channels_last_is_a_layout_not_a_shape() -> None:
    t = vt.arange(24.0).view(1, 2, 3, 4).contiguous(memory_format=vt.channels_last)
    assert t.shape == (1, 2, 3, 4)
    assert t.stride() == (24, 1, 8, 2)
    assert t.is_contiguous(memory_format=vt.channels_last)
    assert (t + 1).is_contiguous(memory_format=vt.channels_last)
    assert vt.equal(t.contiguous(), vt.arange(24.0).view(1, 2, 3, 4))


def test_is_set_to_and_storage_identity() -> None:
    t = vt.zeros(3)
    assert t.is_set_to(t.detach())
    assert not t.is_set_to(t[1:])
    assert t.untyped_storage() is t[1:].untyped_storage()


def test_requires_grad_rules() -> None:
    with pytest.raises(RuntimeError, match="floating point"):
        vt.tensor([1]).requires_grad_()
    y = vt.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="leaf"):
        y.requires_grad = False
    assert y.detach().is_leaf
    t = vt.ones(2)
    with pytest.raises(RuntimeError, match="shape"):
        t.grad = vt.ones(3)


def test_repr_looks_like_torch() -> None:
    assert repr(vt.tensor([1.0, 2.5])) == "tensor([1.0000, 2.5000])"
    assert repr(vt.tensor([1, 2])) == "tensor([1, 2])"
    assert repr(vt.ones(2, requires_grad=True)) == "tensor([1., 1.], requires_grad=True)"
    assert "grad_fn=<MulBackward0>" in repr(vt.ones(2, requires_grad=True) * 2)
    assert repr(vt.zeros(2, dtype=vt.float64)) == "tensor([0., 0.], dtype=votive.float64)"


def test_numbers_are_made_of_one_element_without_an_imaginary_part() -> None:
    for convert in (int, float, complex):
        with pytest.raises(ValueError, match="one element"):
            convert(vt.ones(2))
    assert float(vt.tensor(2 + 0j)) == 2.0
    with pytest.raises(RuntimeError, match="imaginary"):
        float(vt.tensor(2 + 1j))


def test_a_format_needs_a_tensor_of_no_dimension() -> None:
    assert f"{vt.tensor(2.5):.2f}" == "2.50"
    assert f"{vt.tensor([2.5])}" == "tensor([2.5000])"
    with pytest.raises(TypeError, match="format"):
        f"{vt.tensor([2.5]):.2f}"


def test_the_constructor_takes_sizes_and_sequences_only() -> None:
    assert vt.Tensor(vt.Size([2, 3])).shape == (2, 3)
    for value in (2.5, None):
        with pytest.raises(TypeError, match="sequence"):
            vt.Tensor(value)


def test_integers_beyond_64_bits_are_refused_instead_of_cut_short() -> None:
    x = vt.tensor([1, 2])
    for compute in (lambda: x + 2**64, lambda: x * 2**65, lambda: x < 2**64):
        with pytest.raises(OverflowError, match="64 bits"):
            compute()


def test_inversion_of_floating_point_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="~"):
        ~vt.ones(2)
