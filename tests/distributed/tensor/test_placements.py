"""How tensors lie: cut, put together, moved from any placement to any other, and what is refused."""

from __future__ import annotations

import copy
import itertools
import pickle
import random
from typing import Any

import pytest

import votive
import votive.distributed as dist
from votive.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    ones,
    rand,
    randn,
    zeros,
)
from votive.distributed.tensor import full as full_on
from votive.distributed.tensor.calls import brought

SIZES = [(4, 6), (5, 3), (1, 7), (2, 0), (3, 2, 5)]


def any_to_any(mesh_shape: tuple[int, ...]) -> None:
    mesh = dist.init_device_mesh("cpu", mesh_shape)
    pick = random.Random(len(mesh_shape))
    for shape in SIZES:
        options: list[Any] = [Replicate(), Partial(), *(Shard(d) for d in range(len(shape)))]
        pairs = list(itertools.product(itertools.product(options, repeat=len(mesh_shape)), repeat=2))
        for have, want in pairs if len(mesh_shape) == 1 else pick.sample(pairs, 25):
            whole = votive.arange(votive.Size(shape).numel(), dtype=votive.float64).view(shape) + 1
            x = brought(distribute_tensor(whole, mesh, src_data_rank=None), have)
            y = brought(x, want)
            assert y.placements == want
            assert votive.equal(y.full_tensor(), whole), (shape, have, want)
            leaf = x.detach().requires_grad_()
            (brought(leaf, want) * whole.numel()).sum().backward()
            assert (leaf.grad.full_tensor() == whole.numel()).all(), (shape, have, want)


@pytest.mark.parametrize("mesh", [(2,), (4,), (2, 2)], ids=str)
def test_tensors_move_from_any_placement_to_any_other(mesh: tuple[int, ...]) -> None:
    dist.simulate(any_to_any, votive.Size(mesh).numel(), mesh)


def reductions() -> Any:
    mesh = dist.init_device_mesh("cpu", (3,))
    mine = votive.tensor([1.0, 2.0, 3.0]) * (mesh.get_rank() + 1)
    found = []
    for op in ("sum", "avg", "product", "max", "min"):
        x = DTensor.from_local(mine, mesh, [Partial(op)])
        assert x.redistribute(placements=[Shard(0)]).full_tensor().tolist() == x.full_tensor().tolist()
        found.append(x.full_tensor().tolist())
    return found


def test_parts_are_reduced_as_their_placement_says() -> None:
    total, mean, product, largest, least = dist.simulate(reductions, 3)[1]
    assert total == [6.0, 12.0, 18.0]
    assert mean == [2.0, 4.0, 6.0]
    assert product == [6.0, 48.0, 162.0]
    assert largest == [3.0, 6.0, 9.0]
    assert least == [1.0, 2.0, 3.0]


def local_parts() -> None:
    mesh = dist.init_device_mesh("cpu", (2,))
    me = mesh.get_rank()
    local = votive.full((2, 3), float(me), requires_grad=True)
    x = DTensor.from_local(local, mesh, [Shard(-2)])
    assert tuple(x.shape) == (4, 3)
    assert x.placements == (Shard(0),)
    assert x.device_mesh is mesh
    assert x.stride() == (3, 1)
    assert x.dtype is votive.float32
    assert x.numel() == 12
    assert len(x) == 4
    assert repr(x).startswith("DTensor(local_tensor=tensor([[")
    assert "placements=(Shard(dim=0),)" in repr(x)
    back = x.to_local()
    (back * (me + 1)).sum().backward()
    assert local.grad.tolist() == [[me + 1.0] * 3] * 2
    # Uneven parts need the shape of the whole.
    part = votive.ones(2 - me, 2)
    assert tuple(DTensor.from_local(part, mesh, [Shard(0)], shape=(3, 2), stride=(2, 1)).shape) == (3, 2)
    with pytest.raises(RuntimeError, match="gives this rank"):
        DTensor.from_local(part, mesh, [Shard(0)], shape=(9, 2), stride=(2, 1))
    with pytest.raises(RuntimeError, match="only accepts"):
        DTensor.from_local(x, mesh, [Shard(0)])
    with pytest.raises(RuntimeError, match="redistributing to Partial"):
        x.redistribute(placements=[Partial()])
    with pytest.raises(RuntimeError, match="placements is needed"):
        x.redistribute()
    with pytest.raises(ValueError, match="same length"):
        distribute_tensor(votive.ones(2), mesh, [Shard(0), Shard(0)])
    with pytest.raises(IndexError, match="out of range"):
        distribute_tensor(votive.ones(2), mesh, [Shard(1)])
    with pytest.raises(ValueError, match="Cannot distribute a DTensor with placements"):
        distribute_tensor(x.detach(), mesh, [Replicate()])
    with pytest.raises(TypeError, match="distribute_tensor"):
        DTensor(votive.ones(2))


def test_parts_make_a_whole_and_gradients_return_to_them() -> None:
    dist.simulate(local_parts, 2)


def refusals() -> None:
    mesh = dist.init_device_mesh("cpu", (2,))
    x = distribute_tensor(votive.randn(4, 4), mesh, [Shard(0)])
    for call in (
        lambda: x + votive.ones(4, 4),
        lambda: votive.cat([x, votive.ones(1, 4)]),
        lambda: votive.ones(4, 4) @ x,
    ):
        with pytest.raises(RuntimeError, match=r"mixed votive.Tensor and DTensor"):
            call()
    with pytest.raises(RuntimeError, match="mixed"):
        votive.ones(4, 4).add_(x)
    assert (x + votive.tensor(1.0)).placements == (Shard(0),)
    with pytest.warns(UserWarning, match="implicitly creating a replicated"):
        x * votive.ones(1)
    with pytest.raises(NotImplementedError, match=r"linalg_inv|inv.*no rule"):
        votive.linalg.inv(x)
    assert votive.linalg.inv(x.redistribute(placements=[Replicate()])).placements == (Replicate(),)
    with pytest.raises(NotImplementedError, match="depends on numbers"):
        x[x > 0]
    with pytest.raises(NotImplementedError, match="out="):
        votive.add(x, x, out=x)
    with pytest.raises(RuntimeError, match="full_tensor"):
        x.numpy()
    with pytest.raises(RuntimeError, match="checkpoint"):
        pickle.dumps(x)
    with pytest.raises(IndexError, match="out of range"):
        votive.nn.functional.embedding(distribute_tensor(votive.tensor([9]), mesh), x)


def test_what_has_no_rule_and_what_is_mixed_is_refused() -> None:
    dist.simulate(refusals, 2)


def in_place() -> None:
    mesh = dist.init_device_mesh("cpu", (2,))
    x = distribute_tensor(votive.arange(6.0), mesh, [Shard(0)])
    held = x.to_local()
    x += 1
    x.mul_(distribute_tensor(votive.arange(6.0), mesh, [Replicate()]))
    x[2:4].to_local()
    assert x.full_tensor().tolist() == [0.0, 2.0, 6.0, 12.0, 20.0, 30.0]
    assert held.data_ptr() == x.to_local().data_ptr()
    x.copy_(distribute_tensor(votive.ones(6), mesh)).zero_().fill_(3)
    assert x.full_tensor().tolist() == [3.0] * 6
    rows = distribute_tensor(votive.zeros(4, 2), mesh, [Shard(1)])
    rows[1].fill_(5)
    rows[2, :] = 7
    assert rows.full_tensor().tolist() == [[0, 0], [5, 5], [7, 7], [0, 0]]
    with pytest.raises(RuntimeError, match="can't be cast"):
        distribute_tensor(votive.ones(2, dtype=votive.int64), mesh).add_(0.5)
    leaf = distribute_tensor(votive.ones(4), mesh, [Shard(0)]).requires_grad_()
    with pytest.raises(RuntimeError, match="leaf Variable"):
        leaf.add_(1)
    y = leaf * 2
    y.mul_(3).relu_()
    y.sum().backward()
    assert leaf.grad.full_tensor().tolist() == [6.0] * 4
    z = leaf * 2
    seen = z.view(2, 2)
    with pytest.raises(NotImplementedError, match="view"):
        z.add_(1)
    with pytest.raises(NotImplementedError, match="view"):
        seen.add_(1)


def test_writing_in_place_keeps_where_a_tensor_lies_and_its_memory() -> None:
    dist.simulate(in_place, 2)


def second_derivatives() -> None:
    mesh = dist.init_device_mesh("cpu", (2,))
    a, b = votive.randn(4, 3, dtype=votive.float64), votive.randn(3, 5, dtype=votive.float64)
    a, b = a.requires_grad_(), b.requires_grad_()
    x, y = (distribute_tensor(t.detach(), mesh, [Shard(1 - i)], src_data_rank=None) for i, t in enumerate((a, b)))
    x, y = x.requires_grad_(), y.requires_grad_()

    def twice(x: Any, y: Any) -> Any:
        first = votive.autograd.grad((x @ y).tanh().sum(), (x, y), create_graph=True)
        return votive.autograd.grad((first[0] ** 2).sum() + (first[1] ** 3).sum(), (x, y))

    votive.manual_seed(0)
    for wanted, found in zip(twice(a, b), twice(x, y), strict=True):
        assert votive.allclose(found.full_tensor(), wanted)


def test_gradients_have_gradients() -> None:
    votive.manual_seed(1)
    dist.simulate(second_derivatives, 2)


def random_numbers(shape: tuple[int, ...]) -> dict[str, Any]:
    mesh = dist.init_device_mesh("cpu", shape)
    lies: list[Any] = [Shard(i) for i in range(len(shape))]
    votive.manual_seed(3)
    found: dict[str, Any] = {}
    found["rand"] = rand(5, 7, device_mesh=mesh, placements=lies)
    found["randn"] = randn(6, 3, dtype=votive.float64, device_mesh=mesh, placements=lies[::-1])
    x = ones(5, 7, device_mesh=mesh, placements=lies)
    found["dropout"] = votive.nn.functional.dropout(x, 0.4)
    found["uniform"] = zeros(5, 7, device_mesh=mesh, placements=lies).uniform_(-1, 2)
    found["normal"] = zeros(9, 2, device_mesh=mesh, placements=lies).normal_(1, 2)
    found["bernoulli"] = zeros(4, 5, device_mesh=mesh, placements=lies).bernoulli_(0.3)
    found["like"] = votive.randn_like(x)
    found["whole"] = votive.rand_like(full_on((3, 2), 1.0, device_mesh=mesh))
    found["half"] = rand(3, 5, dtype=votive.bfloat16, device_mesh=mesh, placements=lies)
    found["last"] = rand(1, 2, device_mesh=mesh)
    return {name: t.full_tensor().tolist() for name, t in found.items()}


@pytest.mark.parametrize("shape", [(2,), (3,), (2, 2)], ids=str)
def test_random_numbers_are_those_of_one_process(shape: tuple[int, ...]) -> None:
    found = dist.simulate(random_numbers, votive.Size(shape).numel(), shape)
    alone = dist.simulate(random_numbers, 1, (1,))[0]
    votive.manual_seed(3)
    assert alone["rand"] == votive.rand(5, 7).tolist()
    assert alone["randn"] == votive.randn(6, 3, dtype=votive.float64).tolist()
    assert alone["dropout"] == votive.nn.functional.dropout(votive.ones(5, 7), 0.4).tolist()
    for one in found:
        assert one == alone


def modules() -> None:
    mesh = dist.init_device_mesh("cpu", (2,))
    votive.manual_seed(0)
    plain = votive.nn.Sequential(votive.nn.Linear(4, 6), votive.nn.Tanh(), votive.nn.Linear(6, 2))
    votive.manual_seed(0)
    model = votive.nn.Sequential(votive.nn.Linear(4, 6), votive.nn.Tanh(), votive.nn.Linear(6, 2))

    def cut(name: str, module: Any, mesh: Any) -> None:
        for key, value in list(module.named_parameters(recurse=False)):
            module.register_parameter(key, votive.nn.Parameter(distribute_tensor(value.detach(), mesh, [Shard(0)])))

    def spread(module: Any, inputs: Any, mesh: Any) -> Any:
        return DTensor.from_local(inputs[0], mesh)

    distribute_module(model, mesh, cut, spread, lambda module, out, mesh: out.full_tensor())
    x = votive.randn(3, 4)
    assert votive.allclose(model(x), plain(x), atol=1e-6)
    assert all(isinstance(p, DTensor) and isinstance(p, votive.nn.Parameter) for p in model.parameters())
    assert model[0].weight.is_leaf
    assert model[0].weight.requires_grad
    state = model.state_dict()
    assert tuple(state["0.weight"].shape) == (6, 4)
    assert isinstance(state["0.weight"], DTensor)
    for p in model.parameters():
        p.data.zero_()
    model.load_state_dict({k: v.clone() for k, v in state.items()})
    model.to(votive.float64)
    assert model[2].bias.dtype is votive.float64
    again = copy.deepcopy(model)
    assert isinstance(again[0].weight, votive.nn.Parameter)
    assert again[0].weight.placements == (Shard(0),)
    with pytest.raises(RuntimeError, match="once"):
        distribute_module(model, mesh)


def test_modules_whose_parameters_are_spread() -> None:
    dist.simulate(modules, 2)


def apart_seeds() -> list[Any]:
    mesh = dist.init_device_mesh("cpu", (2,))
    votive.manual_seed(dist.get_rank())
    chances = distribute_tensor(votive.tensor([[0.2, 0.3, 0.5]] * 4), mesh)
    x = ones(4, 3, device_mesh=mesh)
    found = [
        chances.multinomial(20, replacement=True),
        votive.bernoulli(chances),
        votive.nn.functional.dropout(x, 0.5),
        votive.nn.functional.gumbel_softmax(chances),
        x.clone().normal_(),
    ]
    with pytest.raises(NotImplementedError, match="parameters that are tensors"):
        votive.bernoulli(chances.redistribute(placements=[Shard(0)]))
    return [t.to_local().tolist() for t in found]


def test_ranks_with_other_seeds_draw_the_same() -> None:
    first, second = dist.simulate(apart_seeds, 2)
    assert first == second
