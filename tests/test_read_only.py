"""Memory that must not be written refuses writes, whichever way they come."""

from __future__ import annotations

import copy
import mmap
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive as vt
from votive.core.errors import ReadOnlyError
from votive.ops.registry import COMPOSITES, OPS

TEXT = bytes(range(32))


def quietly(make: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make()


def frozen(array: Any) -> Any:
    array = np.ascontiguousarray(array)
    array.flags.writeable = False
    return array


def read_only(*shape: int, dtype: Any = np.float32) -> Any:
    """A tensor over a read-only array of the numbers 1, 2, ..."""
    values = np.arange(1, np.prod(shape, dtype=int) + 1).reshape(shape).astype(dtype)
    return quietly(lambda: vt.from_numpy(frozen(values)))


def mapped(tmp_path: Path, **how: Any) -> Any:
    path = tmp_path / "numbers"
    path.write_bytes(TEXT)
    return np.memmap(path, np.uint8, **how)


def raw_map(tmp_path: Path) -> Any:
    path = tmp_path / "numbers"
    path.write_bytes(TEXT)
    with path.open("rb") as f:
        return mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)


# Every way in that shares memory, with memory that must not be written.
WAYS_IN: dict[str, Any] = {
    "frombuffer(bytes)": lambda tmp: vt.frombuffer(TEXT, dtype=vt.uint8),
    "frombuffer(memoryview)": lambda tmp: vt.frombuffer(memoryview(TEXT), dtype=vt.uint8),
    "frombuffer(mmap)": lambda tmp: vt.frombuffer(raw_map(tmp), dtype=vt.uint8),
    "from_numpy(frozen)": lambda tmp: vt.from_numpy(frozen(np.frombuffer(TEXT, np.uint8))),
    "from_numpy(strided)": lambda tmp: vt.from_numpy(np.frombuffer(TEXT, np.uint8)[::2]),
    "from_numpy(memmap)": lambda tmp: vt.from_numpy(mapped(tmp, mode="r")),
    "asarray(frozen)": lambda tmp: vt.asarray(np.frombuffer(TEXT, np.uint8)),
    "asarray(bytes)": lambda tmp: vt.asarray(TEXT, dtype=vt.uint8),
    "from_dlpack(frozen)": lambda tmp: vt.from_dlpack(np.frombuffer(TEXT, np.uint8)),
    "from_dlpack(tensor)": lambda tmp: vt.from_dlpack(vt.frombuffer(TEXT, dtype=vt.uint8)),
}


@pytest.mark.parametrize("way", WAYS_IN)
def test_what_came_in_read_only_is_never_written(way: str, tmp_path: Path) -> None:
    x = quietly(lambda: WAYS_IN[way](tmp_path))
    before = x.tolist()
    places = {
        "whole": lambda: x,
        "a slice": lambda: x[2:5],
        "a view": lambda: x.view(2, -1)[1],
        "transposed": lambda: x.view(2, -1).t(),
        "detached": lambda: x.detach(),
        "data": lambda: x.data,
        "a window": lambda: x.as_strided((2,), (1,)),
        "another type": lambda: x.view(vt.int8),
        "a part": lambda: x.split(4)[0],
        "resized": lambda: x.view(-1).resize_(3),
        "a copy of the tensor object": lambda: copy.copy(x),
        "set_": lambda: vt.empty(0, dtype=vt.uint8).set_(x),
    }
    for place in places.values():
        for write in (
            lambda t: t.fill_(9),
            lambda t: t.add_(1),
            lambda t: t.copy_(vt.zeros(t.shape, dtype=t.dtype)),
            lambda t: t.__setitem__(0, 3),
            lambda t: vt.add(t, t, out=t),
            lambda t: t.numpy().__setitem__(0, 3),
        ):
            with pytest.raises((ReadOnlyError, ValueError), match="read-only"):
                write(place())
    assert x.tolist() == before
    assert bytes(range(32)) == TEXT
    assert x.clone().fill_(9).tolist() == [9] * len(before)  # a copy is ours


def test_broadcast_arrays_refuse_too() -> None:
    x = quietly(lambda: vt.from_numpy(np.broadcast_to(np.uint8(7), (32,))))
    for write in (lambda: x.fill_(1), lambda: x[3:4].fill_(1), lambda: vt.add(x, 1, out=x)):
        with pytest.raises(ReadOnlyError):
            write()


def test_the_error_says_what_was_called_and_what_to_do() -> None:
    with pytest.raises(RuntimeError, match=r"fill_: .*read-only.*clone\(\)"):
        read_only(4).fill_(9)


def test_numpy_and_dlpack_are_told() -> None:
    x = read_only(4)
    assert not x.numpy().flags.writeable
    assert not np.asarray(x).flags.writeable
    assert not np.from_dlpack(x).flags.writeable
    assert vt.ones(4).numpy().flags.writeable
    assert not vt.from_numpy(np.ones(4))._storage.readonly


def test_a_later_change_of_the_array_changes_no_tensor() -> None:
    a = np.zeros((2, 3))
    x = vt.from_numpy(a)
    a.shape = (6,)
    a.flags.writeable = False
    assert x.shape == (2, 3)
    x[1].add_(2)
    assert a.tolist() == [0, 0, 0, 2, 2, 2]


def test_as_tensor_copies_what_it_cannot_share() -> None:
    x = vt.as_tensor(frozen(np.zeros(3)))
    assert x.fill_(2).tolist() == [2, 2, 2]


def test_a_private_map_is_written_without_its_file(tmp_path: Path) -> None:
    x = vt.from_numpy(mapped(tmp_path, mode="c"))
    x.fill_(7)
    assert x.tolist() == [7] * 32
    assert (tmp_path / "numbers").read_bytes() == TEXT


def test_loaded_files_can_be_written_and_stay_as_they_were(tmp_path: Path) -> None:
    vt.io.safetensors.save_file({"a": vt.arange(300.0)}, tmp_path / "a.safetensors")
    vt.save({"a": vt.arange(300.0)}, tmp_path / "a.vt")
    np.save(tmp_path / "a.npy", np.arange(300.0))
    np.savez(tmp_path / "a.npz", a=np.arange(300.0))
    loads = {
        "a.safetensors": lambda p: vt.io.safetensors.load_file(p)["a"],
        "a.vt": lambda p: vt.load(p)["a"],
        "a.npy": lambda p: vt.io.npy.load(p),
        "a.npz": lambda p: vt.io.npy.load(p)["a"],
    }
    for name, load in loads.items():
        raw = (tmp_path / name).read_bytes()
        x = load(tmp_path / name)
        x.mul_(2)
        assert x[299].item() == 598
        assert (tmp_path / name).read_bytes() == raw


def test_optimizers_refuse_before_the_first_parameter_is_changed() -> None:
    for make in (vt.optim.SGD, vt.optim.Adam, vt.optim.AdamW, vt.optim.RMSprop, vt.optim.Adagrad):
        a, b = vt.ones(8, requires_grad=True), read_only(8).requires_grad_()
        (a * b).sum().backward()
        for foreach in (None, False):
            before = b.tolist()
            with pytest.raises(ReadOnlyError):
                make([b] if foreach is False else [a, b], lr=0.1, foreach=foreach).step()
            assert b.tolist() == before
        assert a.tolist() == [1] * 8


def test_running_statistics_and_averages_refuse() -> None:
    x = vt.randn(4, 3, 5)
    mean, var = read_only(3), read_only(3)
    with pytest.raises(ReadOnlyError):
        vt.nn.functional.batch_norm(x, mean, var, training=True)
    assert mean.tolist() == [1, 2, 3]
    assert var.tolist() == [1, 2, 3]
    vt.nn.functional.batch_norm(x, mean, var)  # reading is no write
    bn = vt.nn.BatchNorm1d(3)
    bn.running_mean = mean
    with pytest.raises(ReadOnlyError):
        bn(x)


def test_gradients_are_not_summed_into_read_only_memory() -> None:
    p, held = vt.ones(4, requires_grad=True), read_only(4)
    p.grad = held
    with pytest.raises(ReadOnlyError):
        (p * 2).sum().backward()
    assert held.tolist() == [1, 2, 3, 4]


def test_state_dicts_are_not_loaded_into_read_only_memory() -> None:
    net = vt.nn.Linear(2, 1, bias=False)
    net.weight = vt.nn.Parameter(read_only(1, 2))
    with pytest.raises(RuntimeError, match="read-only"):
        net.load_state_dict({"weight": vt.zeros(1, 2)})
    assert net.weight.tolist() == [[1, 2]]


def _methods() -> list[str]:
    """Every Tensor method that writes in place."""
    ours = {f"{o.name}_" for o in OPS.values() if o.inplace and o.method}
    ours |= {f"{c.name}_" for c in COMPOSITES.values() if c.inplace and c.method}
    ours |= {c.name for c in COMPOSITES.values() if c.name.endswith("_") and c.method}
    return sorted(n for n in ours if hasattr(vt.Tensor, n) and not n.startswith("_"))


# These change how a tensor looks at memory, or what it records, not the memory.
NO_WRITES = {
    "as_strided_",
    "detach_",
    "requires_grad_",
    "resize_",
    "resize_as_",
    "set_",
    "squeeze_",
    "swapaxes_",
    "swapdims_",
    "t_",
    "transpose_",
    "unsqueeze_",
    "share_memory_",
}


@pytest.mark.parametrize("name", _methods())
def test_no_method_writes_into_read_only_memory(name: str) -> None:
    """Whatever arguments make the call valid: the memory is as before, and somebody refused."""
    index = vt.tensor([[0, 1, 2], [2, 1, 0], [0, 0, 0]])
    given: list[tuple[Any, ...]] = [
        (),
        (2,),
        (vt.ones(3, 3),),
        (0.5, 2.0),
        (0, index, 1.0),
        (0, index[0], 1.0),
        (0, index[0], vt.ones(3, 3)),
        (0, index, vt.ones(3, 3)),
        (index > 0, 1.0),
        (index > 0, vt.ones(9)),
        (0,),
        (vt.ones(3, 3), vt.ones(3, 3)),
        (0, 0, 1.0),
        (1, 0),
        (vt.ones(3), vt.ones(3)),
        ((index[0], index[1]), vt.ones(3)),
        (index, vt.ones(3, 3)),
        (vt.ones(3, 3), vt.ones(3, 3), vt.ones(3, 3)),
        (vt.ones(3, 3) > 0,),
        (0, index, vt.ones(3, 3), "sum"),
        (0, index[0], vt.ones(3, 3), "prod"),
        (2, 0, 1.0),
    ]
    refused = False
    for kind in (np.float32, np.int64, np.bool_, np.float64, np.complex64):
        for args in given:
            x = read_only(3, 3, dtype=kind)
            memory = x._storage.bytes_view().tobytes()
            try:
                quietly(lambda x=x, args=args: getattr(x, name)(*args))
            except ReadOnlyError:
                refused = True
            except Exception:
                pass
            assert x._storage.bytes_view().tobytes() == memory, (name, args)
            if name in ("baddbmm_",):
                y = read_only(1, 3, 3)
                with pytest.raises(ReadOnlyError):
                    y.baddbmm_(vt.ones(1, 3, 3), vt.ones(1, 3, 3))
                refused = True
    assert refused or name in NO_WRITES, f"no call of {name} was refused"


@pytest.mark.parametrize("name", sorted(o.name for o in OPS.values() if o.mutates and not o.name.startswith("__")))
def test_kernels_that_write_into_arguments_are_known_to_refuse(name: str) -> None:
    """All of them run through one function, which looks before the kernel runs."""
    from votive.dispatch.execute import writable_arguments

    op = OPS[name]
    args = [None] * len(op.schema.args)
    for written in op.mutates:
        values = list(args)
        at = op.schema.names.index(written)
        values[at] = [read_only(2)] if op.schema.args[at].is_list else read_only(2)
        with pytest.raises(ReadOnlyError):
            writable_arguments(op, tuple(values))
