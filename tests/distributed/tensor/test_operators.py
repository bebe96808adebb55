"""Operators give on distributed tensors, however these lie, what they give on plain ones, and the same gradients."""

from __future__ import annotations

import random
from typing import Any

import pytest

import votive
import votive.distributed as dist
from votive.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

from .cases import CASES, Case

MESHES = {"2": (2,), "3": (3,), "2x2": (2, 2)}


def placements(pick: random.Random, ndim: int, mesh: tuple[int, ...], partial: bool = True) -> list[Any]:
    """Some way for a tensor to lie."""
    options: list[Any] = [Replicate(), *(Shard(d) for d in range(ndim))]
    if partial:
        options.append(Partial())
    return [pick.choice(options) for _ in mesh]


def spread(t: Any, mesh: Any, lies: list[Any]) -> Any:
    """A leaf that lies as wanted."""
    made = distribute_tensor(t, mesh, [Replicate() if p.is_partial() else p for p in lies], src_data_rank=None)
    if any(p.is_partial() for p in lies):
        # Parts that differ: each rank adds what the others take away.
        from votive.distributed.tensor.calls import brought

        made = brought(made, tuple(lies))
    return made.detach().requires_grad_()


def compare(shape: tuple[int, ...], cases: list[Case], seed: int) -> list[str]:
    """What differs."""
    mesh = dist.init_device_mesh("cpu", shape)
    pick = random.Random(seed)
    wrong = []
    for name, shapes, fn in cases:
        for _ in range(3):
            g = votive.Generator().manual_seed(pick.randrange(1 << 30))
            plain = [votive.randn(s, generator=g, dtype=votive.float64).requires_grad_() for s in shapes]
            # Positions are taken from the last argument of some: it lies in shards or whole.
            lies = [placements(pick, len(s), shape) for s in shapes]
            there = [spread(t.detach(), mesh, p) for t, p in zip(plain, lies, strict=True)]
            wanted, found = fn(*plain), fn(*there)
            at = f"{name} of {lies}"
            if not isinstance(found, DTensor):
                wrong.append(f"{at}: gave a {type(found).__name__}")
                continue
            if tuple(found.shape) != tuple(wanted.shape) or found.dtype != wanted.dtype:
                wrong.append(f"{at}: {found.dtype} {tuple(found.shape)}, not {wanted.dtype} {tuple(wanted.shape)}")
                continue
            whole = found.full_tensor()
            if not votive.allclose(whole.detach().double(), wanted.detach().double(), atol=1e-9, equal_nan=True):
                wrong.append(f"{at}: {whole} is not {wanted}")
                continue
            if not wanted.requires_grad:
                continue
            by = votive.randn(tuple(wanted.shape), generator=g, dtype=wanted.dtype)
            wanted.backward(by)
            found.backward(distribute_tensor(by, mesh, placements(pick, by.ndim, shape, False), src_data_rank=None))
            for i, (a, b) in enumerate(zip(plain, there, strict=True)):
                if (a.grad is None) != (b.grad is None):
                    wrong.append(f"{at}: gradient {i} is {b.grad}, not {a.grad}")
                elif a.grad is not None and not votive.allclose(b.grad.full_tensor(), a.grad, atol=1e-9):
                    wrong.append(f"{at}: gradient {i} is {b.grad.full_tensor()}, not {a.grad}")
    return wrong


@pytest.mark.parametrize("mesh", MESHES)
def test_operators_and_their_gradients_are_those_of_plain_tensors(mesh: str) -> None:
    shape = MESHES[mesh]
    found = dist.simulate(compare, votive.Size(shape).numel(), shape, CASES, len(shape) + shape[0])
    assert found[0] == []
