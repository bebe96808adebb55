"""Processes that are forked see each other's writes to shared tensors, and to all that look at their memory."""

from __future__ import annotations

import votive
from votive import nn

from .process import run


def test_views_move_to_shared_memory_together() -> None:
    whole = votive.arange(6.0).view(2, 3)
    part, column = whole[1:, 1:], whole.t()[0]
    before = whole._version
    assert not whole.is_shared()
    assert part.share_memory_() is part
    assert all(t.is_shared() for t in (whole, part, column))
    part[0, 0] = 9.0
    column[0] = -1.0
    assert whole.tolist() == [[-1.0, 1.0, 2.0], [3.0, 9.0, 5.0]]
    assert whole._version >= before


def test_any_dtype_layout_and_size_can_be_shared() -> None:
    for dtype in (votive.float32, votive.bfloat16, votive.complex64, votive.bool, votive.int8):
        for shape in ((), (0, 2), (3, 4)):
            x = votive.ones(shape).to(dtype)
            y = x.clone().share_memory_()
            assert votive.equal(x, y)
            assert (y.shape, y.dtype) == (x.shape, dtype)
    turned = votive.arange(6.0).view(2, 3).t().share_memory_()
    assert turned.stride() == (1, 3)
    assert turned.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]


def test_a_shared_parameter_stays_the_parameter() -> None:
    layer = nn.Linear(2, 1)
    weight = layer.weight
    layer.share_memory()
    assert layer.weight is weight
    assert weight.is_shared()
    assert weight.requires_grad
    layer(votive.ones(1, 2)).sum().backward()
    assert weight.grad is not None


def test_several_processes_train_one_set_of_weights() -> None:
    run("""
        import torch, torch.multiprocessing as mp
        from torch import nn

        def train(model, steps):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            for _ in range(20):
                optimizer.zero_grad()
                ((model(torch.ones(4, 2)) - 3) ** 2).mean().backward()
                optimizer.step()
            steps += 20

        mp.set_start_method("spawn", force=True)
        assert mp.get_start_method() == "spawn"
        model = nn.Linear(2, 1)
        nn.init.zeros_(model.weight)
        model.share_memory()
        steps = [torch.zeros(1).share_memory_() for _ in range(2)]
        workers = [mp.Process(target=train, args=(model, s)) for s in steps]
        [w.start() for w in workers]
        [w.join() for w in workers]
        assert [w.exitcode for w in workers] == [0, 0]
        assert [s.item() for s in steps] == [20, 20]
        assert model.weight.min() > 0.1
    """)
