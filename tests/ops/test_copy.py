"""Copies to a GPU: what `Tensor.cuda` takes, and what it says where there is none."""

from __future__ import annotations

import pytest

import votive


def test_cuda_gives_a_tensor_of_the_gpu_or_says_that_there_is_none() -> None:
    x = votive.tensor([1.0, 2.0])
    if not votive.cuda.is_available():
        with pytest.raises(RuntimeError, match="cuda"):
            x.cuda()
        return
    for there in (x.cuda(), x.cuda(0), x.cuda("cuda:0"), x.cuda(non_blocking=True)):
        assert there.device == votive.device("cuda", 0)
        assert there.tolist() == [1.0, 2.0]


def test_cuda_takes_no_other_device() -> None:
    with pytest.raises(RuntimeError, match=r"cuda: the device must be a GPU, got cpu"):
        votive.ones(2).cuda("cpu")
