"""Memory is shared with the outside where it can be, and copied where it must."""

from __future__ import annotations

import numpy as np
import pytest

import votive as vt


def test_a_tensor_from_numpy_and_its_array_see_each_others_writes() -> None:
    a = np.arange(6.0).reshape(2, 3)
    t = vt.from_numpy(a.T)
    a[0, 1] = 9
    t[2, 1] = 7
    assert t[1, 0].item() == 9
    assert a[1, 2] == 7
    assert t.stride() == (1, 3)


def test_numpy_gives_the_tensors_own_memory() -> None:
    t = vt.zeros(2, 3)
    t.numpy()[1, 2] = 4
    assert t[1, 2].item() == 4
    assert t.t().numpy().strides == (4, 12)


def test_tensor_always_copies() -> None:
    a = np.zeros(2)
    t = vt.tensor(a)
    a[0] = 1
    assert t.tolist() == [0, 0]
    with pytest.warns(UserWarning, match="detach"):
        u = vt.tensor(t)
    t[0] = 3
    assert u.tolist() == [0, 0]


@pytest.mark.parametrize("function", [vt.as_tensor, vt.asarray])
def test_as_tensor_and_asarray_share_unless_something_changes(function: object) -> None:
    a = np.zeros(2, np.float32)
    shared, cast = function(a), function(a, dtype=vt.float64)  # type: ignore[operator]
    a[0] = 1
    assert shared.tolist() == [1, 0]
    assert cast.tolist() == [0, 0]
    assert function(shared) is shared  # type: ignore[operator]


def test_asarray_copies_on_demand_and_refuses_to_share_what_it_cannot() -> None:
    a = np.zeros(2)
    t = vt.asarray(a, copy=True)
    a[0] = 1
    assert t.tolist() == [0, 0]
    with pytest.raises(ValueError, match="copy"):
        vt.asarray(a, dtype=vt.float32, copy=False)


def test_asarray_keeps_history_unless_asked_not_to_require_grad() -> None:
    x = vt.ones(2, requires_grad=True) * 2
    assert vt.asarray(x).requires_grad
    assert not vt.asarray(x, requires_grad=False).requires_grad
    assert vt.asarray([1.0], requires_grad=True).requires_grad


def test_frombuffer_shares_the_buffer() -> None:
    raw = bytearray(8)
    t = vt.frombuffer(raw, dtype=vt.int16, offset=2)
    raw[2] = 5
    assert t.tolist() == [5, 0, 0]
    t[1] = 1
    assert raw[4] == 1
    with pytest.warns(UserWarning, match="not writable"):
        vt.frombuffer(bytes(4), dtype=vt.int16)


def test_dlpack_shares_in_both_directions() -> None:
    t = vt.zeros(3)
    a = np.from_dlpack(t)
    t[1] = 2
    assert a[1] == 2
    b = np.zeros(3)
    u = vt.from_dlpack(b)
    b[0] = 4
    assert u.tolist() == [4, 0, 0]
    assert vt.from_dlpack(b, copy=True).tolist() == [4, 0, 0]


def test_a_read_only_array_is_announced() -> None:
    a = np.arange(3)
    a.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        vt.from_numpy(a)
    t = vt.as_tensor(a)
    t[0] = 5  # a copy: the array stays as it is
    assert a[0] == 0


def test_nested_lists_decide_their_dtype_from_all_their_numbers() -> None:
    assert vt.tensor([[1, 2], [3, 4.5]]).dtype is vt.float32
    assert vt.tensor([[True], [2]]).dtype is vt.int64
    assert vt.tensor([1.5, 2j]).dtype is vt.complex64
    assert vt.tensor([np.float64(1), 2]).dtype is vt.float64
    assert vt.tensor([np.int8(1), np.int8(2)]).dtype is vt.int8


def test_the_default_dtype_decides_what_new_floats_are() -> None:
    vt.set_default_dtype(vt.float64)
    try:
        made = [vt.tensor(1.5), vt.zeros(2), vt.arange(2.0), vt.linspace(0, 1, 2), vt.full((1,), 0.5)]
        assert {t.dtype for t in made} == {vt.float64}
        assert vt.full((1,), 1j).dtype is vt.complex128
        assert vt.arange(3).dtype is vt.int64
    finally:
        vt.set_default_dtype(vt.float32)
    assert vt.zeros(2).dtype is vt.float32


def test_ragged_lists_say_which_row_is_wrong() -> None:
    with pytest.raises(ValueError, match="length 2, got 1"):
        vt.tensor([[1, 2], [3]])
    with pytest.raises(TypeError, match="a list was expected"):
        vt.tensor([[1, 2], 3])
    with pytest.raises(ValueError, match="stack"):
        vt.tensor([vt.zeros(2), vt.zeros(2)])


def test_integers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(RuntimeError, match="do not fit"):
        vt.tensor([1, 300], dtype=vt.uint8)
    with pytest.raises(ValueError, match="too large"):
        vt.tensor(2**63)
    assert vt.tensor([-1], dtype=vt.uint8).tolist() == [255]
    assert vt.tensor(2**64 - 1, dtype=vt.uint64).item() == 2**64 - 1


CASTS = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e5m2",
]


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("source", CASTS)
def test_casts_between_all_dtypes_agree_with_torch(source: str) -> None:
    torch = pytest.importorskip("torch")
    values = [0.0, 1.0, -1.0, 2.5, -2.5, 100.0, 127.0, 300.0, -300.0, 70000.0, 1e-3, 3.3e5]
    if source in ("float16", "bfloat16", "float32", "float64", "float8_e5m2"):
        values += [float("inf"), -float("inf")]
    theirs = torch.tensor(values, dtype=torch.float64).to(getattr(torch, source))
    ours = vt.tensor(values, dtype=vt.float64).to(getattr(vt, source))
    for target in CASTS:
        want = theirs.to(getattr(torch, target)).to(torch.complex128)
        got = ours.to(getattr(vt, target)).to(vt.complex128)
        keep = np.ones(len(values), bool)
        if target.startswith(("int", "uint")):
            # C leaves open what a number outside of the target's range becomes.
            limits = np.iinfo(target)
            real = ours.to(vt.complex128).numpy().real
            keep = (real >= limits.min) & (real <= limits.max)
        np.testing.assert_array_equal(got.numpy()[keep], want.numpy()[keep], err_msg=f"{source} to {target}")


def test_functions_of_numpy_give_tensors_back() -> None:
    x = vt.tensor([1.0, 2.0])
    for y in (np.add(x, 1), x + np.ones(2, np.float32)):
        assert isinstance(y, vt.Tensor)
        assert y.tolist() == [2.0, 3.0]
    assert np.isnan(x).dtype == vt.uint8


def test_types_that_numpy_lacks_come_in_but_do_not_go_out() -> None:
    with pytest.raises(BufferError, match=r"does not know votive\.bfloat16"):
        np.from_dlpack(vt.ones(2, dtype=vt.bfloat16))
    torch = pytest.importorskip("torch")
    theirs = torch.arange(6.0).reshape(2, 3).to(torch.bfloat16)
    ours = vt.from_dlpack(theirs.t())
    assert (ours.dtype, ours.stride()) == (vt.bfloat16, (1, 3))
    theirs[0, 2] = 9
    del theirs
    assert ours.float().tolist() == [[0.0, 3.0], [1.0, 4.0], [9.0, 5.0]]


def test_dlpack_copies_where_it_is_told_to_and_never_else() -> None:
    t = vt.arange(3.0)
    shared, copied = vt.from_dlpack(t), vt.from_dlpack(t, copy=True)
    t.fill_(7)
    assert (shared.tolist(), copied.tolist()) == ([7.0] * 3, [0.0, 1.0, 2.0])
    capsule = t.__dlpack__(copy=True, dl_device=(1, 0))
    assert "dltensor" in repr(capsule)
    assert t.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="cannot be exported"):
        t.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="no streams"):
        t.__dlpack__(stream=3)
    with pytest.raises(BufferError, match="require gradient"):
        vt.ones(2, requires_grad=True).__dlpack__()
    with pytest.raises(AttributeError, match="not on a GPU"):
        _ = t.__cuda_array_interface__


class Odd:
    """Memory of a kind that nobody here knows."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 99, 0


def test_memory_of_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(BufferError, match="kind 99"):
        vt.from_dlpack(Odd())
