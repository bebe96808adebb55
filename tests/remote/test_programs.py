"""Programs on a device elsewhere: the same bits as here, and no waiting but for values."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import votive
from benchmarks.remote import Delayed
from votive import nn
from votive.formula import apply

from .ground import Ground

CPU = votive.device("cpu")


def network(place: votive.device) -> nn.Sequential:
    votive.manual_seed(0)
    parts = [nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.Dropout(0.3), nn.Linear(8, 3)]
    return nn.Sequential(*parts).to(place)


def trained(place: votive.device, optimizer: Callable[..., Any], steps: int = 4, **options: Any) -> tuple[Any, ...]:
    """The losses, parameters and optimizer of a short training."""
    model = network(place)
    x, y = votive.randn(16, 6).to(place), votive.randint(0, 3, (16,)).to(place)
    votive.manual_seed(1)
    updates = optimizer(model.parameters(), lr=0.05, **options)
    losses = []
    for _ in range(steps):
        updates.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        updates.step()
        losses.append(loss.detach())
    return [v.item() for v in losses], [p.detach().cpu() for p in model.parameters()], model, updates


OPTIMIZERS = ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "Rprop", "ASGD"]


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("fused", [False, True])
def test_training_is_that_of_this_machine_bit_for_bit(name: str, fused: bool, place: votive.device) -> None:
    optimizer, options = getattr(votive.optim, name), {"fused": True} if fused else {}
    try:
        losses, weights, *_ = trained(CPU, optimizer, **options)
    except TypeError:
        pytest.skip(f"{name} takes no fused=")
    there, moved, *_ = trained(place, optimizer, **options)
    assert there == losses
    assert all(votive.equal(a, b) for a, b in zip(weights, moved, strict=True))


def test_a_training_step_waits_for_nothing(place: votive.device) -> None:
    model = network(place)
    updates = votive.optim.AdamW(model.parameters())
    x = votive.randn(4, 6).to(place)

    def step() -> None:
        updates.zero_grad()
        model(x).square().mean().backward()
        updates.step()

    step()
    before = votive.remote.status(place)["round_trips"]
    step()
    assert votive.remote.status(place)["round_trips"] == before


def test_steps_that_a_checkpoint_counted_here_go_on_there(place: votive.device) -> None:
    def resumed(where: votive.device) -> list[Any]:
        *_, model, updates = trained(CPU, votive.optim.Adam)
        model = model.to(where).eval()
        again = votive.optim.Adam(model.parameters(), lr=0.05)
        again.load_state_dict(updates.state_dict())
        for _ in range(2):
            model(votive.ones(2, 6).to(where)).square().sum().backward()
            again.step()
        steps = [s["step"].item() for s in again.state.values()]
        return [steps, *[p.tolist() for p in model.parameters()]]

    here = resumed(CPU)
    assert here[0] == [6.0] * 6
    assert resumed(place) == here


@pytest.fixture(scope="module")
def tales() -> Any:
    from votive.models import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained("tales", dtype=votive.float32).eval()


@pytest.fixture(scope="module")
def tales_there(tales: Any, place: votive.device) -> Any:
    import copy

    return copy.deepcopy(tales).to(place)


IDS = votive.tensor([[5, 9, 100, 7]])


def test_a_forward_waits_once(tales: Any, tales_there: Any, place: votive.device) -> None:
    ids = IDS.to(place)
    with votive.no_grad():
        tales_there(ids)
        votive.remote.synchronize(place)
        before = votive.remote.status(place)
        logits = tales_there(ids).logits.cpu()
        after = votive.remote.status(place)
        assert after["round_trips"] - before["round_trips"] == 1
        assert after["messages"] - before["messages"] > 100
        assert votive.equal(logits, tales(IDS).logits)


def test_a_line_of_20_ms_is_waited_for_once_in_a_forward_and_once_in_a_training_step(ground: Ground) -> None:
    line = Delayed(ground.listener.getsockname()[1], 0.02)
    place = votive.remote.connect(line.url)
    model = network(place)
    updates = votive.optim.Adam(model.parameters())
    x = votive.randn(4, 6).to(place)

    def step() -> float:
        updates.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        updates.step()
        return float(loss.item())

    step()
    for work in (lambda: model(x).tolist(), step):
        before = votive.remote.status(place)
        work()
        after = votive.remote.status(place)
        assert after["round_trips"] - before["round_trips"] == 1
        assert after["messages"] - before["messages"] > 5
    votive.remote.disconnect(place)
    line.close()


@pytest.mark.parametrize("options", [{"do_sample": False}, {"do_sample": True, "seed": 4}, {"num_beams": 2}])
def test_generated_texts_are_those_of_this_machine(
    options: dict[str, Any], tales: Any, tales_there: Any, place: votive.device
) -> None:
    options = {"do_sample": False, **options, "max_new_tokens": 5}
    there = tales_there.generate(IDS.to(place), **options)
    assert there.device == place
    assert there.tolist() == tales.generate(IDS, **options).tolist()


def test_captures_stay_there_and_patches_act_there(tales: Any, tales_there: Any, place: votive.device) -> None:
    found = []
    for model, ids in ((tales, IDS), (tales_there, IDS.to(place))):
        with votive.no_grad(), votive.glass.capture(model, "model.layers.3") as seen:
            plain = model(ids).logits
        (state,) = [seen[k] for k in seen]
        assert state.device == ids.device
        with votive.no_grad(), votive.glass.patch(model, {"model.layers.3": lambda x: x * 0.5}):
            changed = model(ids).logits
        assert not votive.equal(plain, changed)
        found.append((state.cpu(), plain.cpu(), changed.cpu()))
    assert all(votive.equal(a, b) for a, b in zip(*found, strict=True))


def test_hooks_see_values_of_the_device(place: votive.device) -> None:
    model, seen = network(place).eval(), []
    model[0].register_forward_hook(lambda module, args, out: seen.append(out) or out * 2)
    out = model(votive.ones(2, 6, device=place))
    assert seen[0].device == place
    assert out.device == place


def test_views_and_changes_in_place_share_memory_there(place: votive.device) -> None:
    def run(where: votive.device) -> list[Any]:
        x = votive.arange(24.0, device=where).view(2, 3, 4)
        y = x.transpose(0, 2)[1:, ::2]
        y.add_(5)
        x[0].mul_(y.sum())
        x[:, 1] = 7
        x[x > 100] = -1
        x[:, :, 1:].copy_(x[:, :, :-1])  # overlapping
        x[1].add_(x[1, 0])
        z = x.flatten()[3:9].clone()
        grown = votive.zeros(3, device=where)
        grown.resize_(7)
        grown[3:] = 2
        moved = votive.empty(2, device=where)
        moved.copy_(votive.tensor([1, 2]))
        back = votive.zeros(2)
        back.copy_(moved)
        bits = votive.tensor([1.5, 2.5], device=where).view(votive.int32)
        out = votive.empty(2, 3, device=where)
        votive.add(votive.ones(2, 3, device=where), 1, out=out)
        x.requires_grad_()
        (x * 2).sum().backward()
        return [t.tolist() for t in (x, y, z, grown, moved, back, bits, out, x.grad)]

    assert run(place) == run(CPU)


def test_the_same_seed_gives_the_same_numbers(place: votive.device) -> None:
    def run(where: votive.device) -> list[Any]:
        votive.manual_seed(3)
        own = votive.Generator(device=where).manual_seed(5)
        made = [
            votive.rand(3, device=where),
            votive.randn(2, 2, device=where, generator=own),
            votive.randperm(6, device=where),
            votive.bernoulli(votive.full((5,), 0.5, device=where)),
            votive.multinomial(votive.ones(5, device=where), 2),
            nn.functional.dropout(votive.ones(6, device=where)),
            votive.poisson(votive.full((4,), 3.0, device=where)),
        ]
        return [t.tolist() for t in made]

    assert run(place) == run(CPU)


def test_dtypes_go_there_and_back(place: votive.device) -> None:
    whole = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
    broken = ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "complex64", "complex128"]
    for name in (*whole, *broken, "bool"):
        x = votive.tensor([0, 1, 3]).to(getattr(votive, name))
        back = x.to(place).cpu()
        assert back.dtype == x.dtype
        assert back.tolist() == x.tolist()
    t = votive.arange(6).reshape(2, 3).t()
    assert t.to(place).stride() == t.stride()
    assert t.to(place).tolist() == t.tolist()
    assert votive.zeros(0, 3, device=place).tolist() == []


def test_state_is_saved_and_loaded(place: votive.device) -> None:
    model, file = network(place), io.BytesIO()
    votive.save(model.state_dict(), file)
    file.seek(0)
    here = votive.load(file, map_location="cpu")
    other = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.Dropout(0.3), nn.Linear(8, 3)).to(place)
    other.load_state_dict(here)
    assert all(votive.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))
    x = votive.ones(2, device=place)
    assert pickle.loads(pickle.dumps(x)).device == place
    assert repr(x) == f"tensor([1., 1.], device='{place}')"


def test_formulas_of_a_program_are_sent_as_data(place: votive.device) -> None:
    @votive.fuse
    def bent(a: Any, b: Any) -> Any:
        return votive.where(a > 0, (a * b + 1).tanh() * a, -a)

    squareplus = votive.custom_op(
        "remote_squareplus(Tensor input, *, float b=4.0)",
        lambda x, b: 0.5 * (x + apply("sqrt", x * x + b)),
        dtypes="float",
        doc="Smooth relu.",
    )
    found = []
    for where in (CPU, place):
        a = votive.tensor([[0.5, -1.0], [2.0, 3.0]], device=where, requires_grad=True)
        y = squareplus(bent(a, votive.tensor([1.0, 2.0], device=where)))
        y.sum().backward()
        found.append((y.tolist(), a.grad.tolist()))
    assert found[0] == found[1]


def test_kernels_of_a_program_stay_at_home(place: votive.device) -> None:
    shift = votive.custom_op(
        "remote_shift(Tensor input, int shift)",
        infer=lambda x, shift: x.like(x.shape),
        kernels={"cpu": lambda x, shift: np.roll(x, shift, axis=-1)},
        doc="Rotate.",
    )
    with pytest.raises(NotImplementedError, match=r"has no operator of this name.*\.cpu\(\)"):
        shift(votive.ones(3, device=place), 1)


def test_compiled_programs_run_there(place: votive.device) -> None:
    model, x = network(CPU).eval(), votive.randn(4, 6)
    here = model(x)
    there = votive.compile(model.to(place))(x.to(place))
    assert there.device == place
    votive.testing.assert_close(there.cpu(), here)


def test_autocast_lowers_products(place: votive.device) -> None:
    with votive.autocast("remote", dtype=votive.bfloat16):
        assert nn.Linear(4, 4).to(place)(votive.ones(2, 4, device=place)).dtype == votive.bfloat16


def test_another_default_dtype_is_told(place: votive.device) -> None:
    votive.set_default_dtype(votive.float64)
    try:
        x = votive.arange(3, device=place)
        assert (x / 2).dtype == votive.float64
        assert x.sum().tolist() == 3
        assert (x * 0.5).tolist() == [0.0, 0.5, 1.0]
    finally:
        votive.set_default_dtype(votive.float32)


def test_an_error_is_raised_where_somebody_waits(place: votive.device) -> None:
    table = votive.ones(4, 3, device=place)
    lost = nn.functional.embedding(votive.tensor([7], device=place), table) + 1
    untouched = table * 2
    with pytest.raises(IndexError, match=r"^embedding: index 7 is out of bounds"):
        untouched.sum().item()
    with pytest.raises(RuntimeError, match=r"embedding: the value was never computed on the remote device"):
        lost.tolist()
    assert untouched.sum().item() == 24


def test_two_sessions_do_not_mix(ground: Ground, place: votive.device) -> None:
    other = ground.connect()
    assert other != place
    a, b = votive.ones(2, device=place), votive.ones(2, device=other)
    with pytest.raises(RuntimeError, match="same device"):
        a + b
    assert (a + b.to(place)).tolist() == [2, 2]
    assert a.to(other).device == other
    c = votive.zeros(2, device=other)
    c.copy_(a)
    assert c.tolist() == [1, 1]
    votive.remote.disconnect(other)
    with pytest.raises(RuntimeError, match=r"was closed by votive\.remote\.disconnect"):
        b + 1
