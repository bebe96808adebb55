"""What only old programs need: constructors by type, storages, Variable, and writes through `.data`."""

from __future__ import annotations

from .process import run


def test_legacy_constructors_take_sizes_data_and_tensors() -> None:
    run(
        """
        import numpy as np
        import torch
        assert torch.FloatTensor(2, 0).shape == (2, 0) and torch.FloatTensor(np.int64(2)).shape == (2,)
        assert torch.FloatTensor([1, 2]).tolist() == [1.0, 2.0] and torch.FloatTensor().shape == (0,)
        assert torch.FloatTensor(torch.Size([0, 3])).shape == (0, 3) and torch.FloatTensor((1, 2)).shape == (2,)
        assert torch.LongTensor([1.7, 2]).tolist() == [1, 2] and torch.FloatTensor(range(3)).tolist() == [0, 1, 2]
        assert torch.FloatTensor(np.array([1, 2])).dtype is torch.float32
        assert torch.BoolTensor([0, 2]).tolist() == [False, True]
        x = torch.ones(2)
        y = torch.FloatTensor(x)
        y[0] = 5
        assert x[0] == 5
        for wrong in (lambda: torch.FloatTensor(3.0), lambda: torch.FloatTensor(torch.ones(2, dtype=torch.int64))):
            try:
                wrong()
            except TypeError:
                continue
            raise AssertionError
        assert isinstance(x, torch.FloatTensor) and not isinstance(x, torch.LongTensor)
        assert not isinstance(x, torch.cuda.FloatTensor) and not issubclass(torch.FloatTensor, torch.Tensor)
        assert x.type(torch.LongTensor).dtype is torch.int64 and x.type("torch.HalfTensor").dtype is torch.float16
        assert x.new(2, 0).shape == (2, 0) and x.long().new([1, 2]).dtype is torch.int64
        assert repr(torch.FloatTensor) == "<class 'torch.FloatTensor'>" and torch.FloatTensor.dtype is torch.float32
        try:
            x.type("LongTensor")
        except ValueError as error:
            assert "torch.FloatTensor" in str(error)
        """
    )


def test_variables_are_tensors() -> None:
    run(
        """
        import torch
        from torch.autograd import Variable
        x = torch.ones(2)
        v = Variable(x, requires_grad=True)
        assert v.requires_grad and v.data_ptr() == x.data_ptr() and isinstance(x, Variable)
        assert not Variable(v).requires_grad and not Variable(x, volatile=True).requires_grad
        (v * v).sum().backward()
        v.data -= 0.1 * v.grad.data
        assert torch.allclose(v.data, torch.tensor([0.8, 0.8])) and v.volatile is False
        v.data = torch.zeros(3)
        assert v.shape == (3,) and v.requires_grad
        v.data[1] = 2
        assert v.tolist() == [0, 2, 0]
        """
    )


def test_storages_are_the_memory_of_their_tensors() -> None:
    run(
        """
        import torch
        x = torch.arange(6.0).view(2, 3)
        s = x.storage()
        assert len(s) == 6 and s.tolist() == x.flatten().tolist() and s[2] == 2.0 and s.dtype is torch.float32
        s[0] = 9
        assert x[0, 0] == 9 and x[1:].storage().data_ptr() == s.data_ptr()
        u = x.untyped_storage()
        assert u.nbytes() == 24 and u is x.t().untyped_storage() and u.tolist()[-4:] == [0, 0, 160, 64]
        assert isinstance(s, torch.FloatStorage) and not isinstance(s, torch.LongStorage)
        assert x.storage_type() is torch.FloatStorage and torch.is_storage(s) and s.type() == "torch.FloatStorage"
        assert s.double().tolist() == s.tolist() and s.long().dtype is torch.int64
        assert s.clone().data_ptr() != s.data_ptr()
        y = torch.empty(0).set_(s, 1, (2, 2), (2, 1))
        assert y.tolist() == [[1, 2], [3, 4]]
        y[0, 0] = -1
        assert x[0, 1] == -1
        assert torch.FloatTensor(torch.FloatStorage([1, 2])).tolist() == [1, 2]
        assert torch.UntypedStorage(3).fill_(7).tolist() == [7, 7, 7]
        raw = torch.UntypedStorage.from_buffer(b"\\x01\\x02")
        raw.byteswap(torch.int16)
        assert raw.tolist() == [2, 1]
        """
    )


def test_defaults_by_type() -> None:
    run(
        """
        import warnings
        import torch
        warnings.simplefilter("ignore")
        torch.set_default_tensor_type("torch.DoubleTensor")
        assert torch.zeros(1).dtype is torch.float64
        torch.set_default_tensor_type(torch.FloatTensor)
        assert torch.zeros(1).dtype is torch.float32
        for wrong in (torch.LongTensor, torch.float32, "FloatTensor"):
            try:
                torch.set_default_tensor_type(wrong)
            except TypeError:
                continue
            raise AssertionError(wrong)
        """
    )


def test_checkpoints_hold_modules_and_what_a_program_pickles() -> None:
    run(
        """
        import argparse, io, pickle
        import torch
        net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
        value = {"net": net, "args": argparse.Namespace(lr=1), "type": torch.float16, "size": torch.Size([2])}
        file = io.BytesIO()
        torch.save(value, file)
        file.seek(0)
        try:
            torch.load(file)
        except pickle.UnpicklingError as error:
            assert "weights_only=False" in str(error)
        else:
            raise AssertionError
        file.seek(0)
        again = torch.load(file, weights_only=False)
        assert torch.equal(again["net"][0].weight, net[0].weight) and again["args"].lr == 1
        assert again["type"] is torch.float16 and again["size"] == torch.Size([2])
        shared = torch.arange(4.0)
        file = io.BytesIO()
        torch.save({"a": shared, "b": shared[1:], "ns": argparse.Namespace(x=2)}, file)
        with torch.serialization.safe_globals([argparse.Namespace]):
            file.seek(0)
            again = torch.load(file, map_location="cpu")
        again["a"][1] = 7
        assert again["b"][0] == 7 and again["ns"].x == 2
        assert torch.serialization.get_safe_globals() == []
        """
    )
