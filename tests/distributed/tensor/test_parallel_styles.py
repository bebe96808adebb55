"""Modules cut by a plan train as they do in one process: columns, rows, positions, and losses over cut classes."""

from __future__ import annotations

from typing import Any

import pytest

import votive
import votive.distributed as dist
from votive import nn
from votive.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from votive.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)


class Block(nn.Module):
    """A norm and a net, added to what comes in."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.drop = nn.LayerNorm(width), nn.Dropout(0.1)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        return x + self.drop(self.down(nn.functional.gelu(self.up(self.norm(x)))))


class Net(nn.Module):
    """Tokens to scores."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(12, 8)
        self.blocks = nn.ModuleList(Block(8) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 12)

    def forward(self, ids: Any) -> Any:
        x = self.table(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def steps(model: nn.Module, loss_of: Any) -> list[tuple[float, float]]:
    """Losses and norms of gradients of some steps."""
    optimizer = votive.optim.AdamW(model.parameters(), lr=0.01)
    data = votive.Generator().manual_seed(5)
    found = []
    votive.manual_seed(7)
    for _ in range(3):
        ids = votive.randint(0, 12, (2, 8), generator=data)
        optimizer.zero_grad()
        loss = loss_of(model, ids)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        found.append((float(loss), float(norm)))
    return found


def plain_loss(model: nn.Module, ids: Any) -> Any:
    return nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())


def alone() -> list[tuple[float, float]]:
    votive.manual_seed(0)
    return steps(Net(), plain_loss)


def cut(positions: bool, classes: bool) -> list[tuple[float, float]]:
    votive.manual_seed(0)
    model = Net()
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    plan: dict[str, Any] = {
        "table": RowwiseParallel(
            input_layouts=Replicate(),
            output_layouts=Shard(1) if positions else Replicate(),
            use_local_output=not positions,
        ),
        "blocks.*.up": ColwiseParallel(use_local_output=not positions),
        "blocks.*.down": RowwiseParallel(
            output_layouts=Shard(1) if positions else Replicate(), use_local_output=not positions
        ),
        "head": ColwiseParallel(output_layouts=Shard(-1) if classes else Replicate(), use_local_output=not classes),
    }
    if positions:
        plan.update(
            {"blocks.*.norm": SequenceParallel(), "blocks.*.drop": SequenceParallel(), "norm": SequenceParallel()}
        )
        plan["blocks.*.up"] = ColwiseParallel(input_layouts=Shard(1), use_local_output=False)
        plan["head"] = ColwiseParallel(
            input_layouts=Shard(1), output_layouts=Shard(-1) if classes else Replicate(), use_local_output=not classes
        )
    parallelize_module(model, mesh, plan)
    assert isinstance(model.blocks[1].up.weight, DTensor)

    def loss_of(model: nn.Module, ids: Any) -> Any:
        if not classes:
            return plain_loss(model, ids)
        with loss_parallel():
            scores = model(ids).flatten(0, 1)
            assert scores.placements == (Shard(1),)
            return nn.functional.cross_entropy(scores, distribute_tensor(ids.flatten(), mesh))

    return steps(model, loss_of)


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize(("positions", "classes"), [(False, False), (True, False), (True, True), (False, True)])
def test_a_net_that_is_cut_trains_as_in_one_process(ranks: int, positions: bool, classes: bool) -> None:
    wanted = dist.simulate(alone, 1)[0]
    for found in dist.simulate(cut, ranks, positions, classes):
        for a, b in zip(wanted, found, strict=True):
            assert b == pytest.approx(a, rel=2e-5)


def losses(shape: tuple[int, ...], smoothing: float, reduction: str, weighted: bool) -> None:
    mesh = dist.init_device_mesh("cpu", (2,))
    g = votive.Generator().manual_seed(1)
    x = votive.randn(shape, generator=g, dtype=votive.float64).requires_grad_()
    target = votive.randint(0, shape[1], (shape[0], *shape[2:]), generator=g)
    target.view(-1)[0] = -100
    weight = votive.rand(shape[1], generator=g, dtype=votive.float64) if weighted else None
    options: dict[str, Any] = {"label_smoothing": smoothing, "reduction": reduction}
    wanted = nn.functional.cross_entropy(x, target, weight, **options)
    wanted.sum().backward()
    cut = distribute_tensor(x.detach(), mesh, [Shard(1)]).requires_grad_()
    spread = None if weight is None else distribute_tensor(weight, mesh)
    with loss_parallel():
        found = nn.functional.cross_entropy(cut, distribute_tensor(target, mesh), spread, **options)
    found.sum().backward()
    assert votive.allclose(found.full_tensor(), wanted)
    assert cut.grad.placements == (Shard(1),)
    assert votive.allclose(cut.grad.full_tensor(), x.grad)
    with loss_parallel():
        by_log = nn.functional.nll_loss(cut.detach(), distribute_tensor(target, mesh), spread, reduction=reduction)
    assert votive.allclose(by_log.full_tensor(), nn.functional.nll_loss(x, target, weight, reduction=reduction))


@pytest.mark.parametrize("shape", [(6, 5), (3, 7, 4)], ids=str)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_over_cut_classes(shape: tuple[int, ...], smoothing: float, reduction: str) -> None:
    for weighted in (False, True):
        dist.simulate(losses, 2, shape, smoothing, reduction, weighted)


def prepared() -> None:
    mesh = dist.init_device_mesh("cpu", (2,))
    seen: list[Any] = []

    class Part(nn.Module):
        def forward(self, x: Any, other: Any, scale: Any = None) -> Any:
            seen.append((x, other, scale))
            return x, 3

    style = PrepareModuleInput(
        input_layouts=(Shard(0), None),
        desired_input_layouts=(Replicate(), None),
        input_kwarg_layouts={"scale": Replicate()},
        desired_input_kwarg_layouts={"scale": Shard(0)},
    )
    part = parallelize_module(Part(), mesh, style)
    out, three = part(votive.ones(2, 3), 5, scale=votive.ones(4))
    assert (out.placements, seen[0][1], seen[0][2].placements, three) == ((Replicate(),), 5, (Shard(0),), 3)
    with pytest.raises(ValueError, match="same length"):
        part(votive.ones(2, 3))
    both = PrepareModuleInputOutput(
        input_layouts=Shard(0),
        desired_input_layouts=Replicate(),
        use_local_input=True,
        output_layouts=Replicate(),
        desired_output_layouts=Shard(0),
    )
    part = parallelize_module(nn.Identity(), mesh, both)
    assert tuple(part(votive.ones(3, 2)).shape) == (3, 2)
    with pytest.raises(AssertionError, match="same length"):
        PrepareModuleOutput(output_layouts=(Shard(0), Shard(0)), desired_output_layouts=Shard(0))
    with pytest.raises(NotImplementedError, match="only support nn"):
        parallelize_module(nn.ReLU(), mesh, ColwiseParallel())
    with pytest.raises(TypeError, match="parallelize_plan"):
        parallelize_module(nn.ReLU(), mesh, [ColwiseParallel()])
    with pytest.warns(UserWarning, match="could not be resolved"):
        parallelize_module(nn.ReLU(), mesh, {"nothing": ColwiseParallel()})


def test_what_goes_into_calls_and_comes_out_lies_as_asked() -> None:
    dist.simulate(prepared, 2)
