"""Looking into compiled modules and hooking them: as without compiling, and still compiled."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive import glass, nn
from votive.compiler import explain


class Block(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        return x + self.drop(self.down(nn.functional.gelu(self.up(self.norm(x)))))


@pytest.fixture
def model() -> nn.Module:
    votive.manual_seed(0)
    return nn.Sequential(Block(), Block(), nn.Linear(8, 2))


@pytest.fixture
def x() -> votive.Tensor:
    votive.manual_seed(1)
    return votive.randn(4, 5, 8)


def close(a: Any, b: Any) -> None:
    assert (a is None) is (b is None)
    if a is not None:
        assert a.requires_grad == b.requires_grad
        assert votive.allclose(a.detach(), b.detach(), rtol=1e-5, atol=1e-6)


def versions(compiled: Any) -> list[int]:
    """How often each version ran; empty where nothing was compiled."""
    found = explain(compiled)
    assert not found.eager
    return [v.runs for v in found.versions]


@pytest.mark.parametrize("policy", ["keep", "copy", "cpu", "half", "stats"])
@pytest.mark.parametrize("at", ["**", "*.up", ["^0:in", "1.down:in", "*"], "1.up:in.0"])
@pytest.mark.parametrize("grad", [False, True])
def test_a_capture_sees_what_it_sees_without_compiling(model, x, at, policy, grad) -> None:
    compiled = votive.compile(model)
    for i in range(3):
        with votive.set_grad_enabled(grad):
            votive.manual_seed(i)
            with glass.capture(model, at, policy=policy) as wanted:
                y = model(x)
            votive.manual_seed(i)
            with glass.capture(compiled, at, policy=policy) as seen:
                z = compiled(x)
        assert list(seen) == list(wanted)
        assert (seen.runs, seen.bytes) == (wanted.runs, wanted.bytes)
        close(z, y)
        for a in wanted:
            if policy == "stats":
                assert str(seen[a]) == str(wanted[a]) or seen[a].mean == pytest.approx(wanted[a].mean, rel=1e-4)
            else:
                close(seen[a], wanted[a])
    assert versions(compiled) == [2]  # the first call of each block traces, or runs what was traced


def test_every_set_of_addresses_has_a_version_of_its_own_and_comes_again(model, x) -> None:
    model.eval()
    compiled = votive.compile(model)
    with votive.no_grad():
        for _ in range(2):
            for at in ("0", "1", "*.up"):
                with glass.capture(compiled, at) as seen:
                    compiled(x)
                    compiled(x)
                assert len(seen.all(next(iter(seen)))) == 2
            compiled(x)
    assert sorted(versions(compiled)) == [1, 3, 3, 3]
    assert {v.captures for v in explain(compiled).versions} >= {("0",), ("1",), ("0.up", "1.up")}


def test_a_captured_result_is_the_result(model, x) -> None:
    compiled = votive.compile(model.eval())
    for _ in range(2):
        with glass.capture(compiled, "2") as seen:
            y = compiled(x)
        assert seen["2"] is y


def test_captures_in_several_runs_and_blocks(model, x) -> None:
    compiled = votive.compile(model.eval())
    compiled(x)
    with glass.capture(compiled, "0") as outer, glass.capture(compiled, "1", policy="copy") as inner:
        for i in range(3):
            compiled(x + i)
    close(outer.all("0")[2], model[0](x + 2))
    close(inner.all("1")[1], model[1](model[0](x + 1)).detach())
    assert outer.runs == inner.runs == 3


def _losses(kind: str, model: Any, seen: Any, y: Any) -> list[Any]:
    """Something done with the gradients of captured values; what comes of it."""
    kept = [seen["0"], seen["1.up"], seen["1"]]
    if kind in ("retain", "aux", "one"):
        for t in kept:
            t.retain_grad()
    if kind in ("plain", "retain"):
        y.square().sum().backward()
    elif kind == "grad":
        return list(votive.autograd.grad(y.square().sum(), kept))
    elif kind == "aux":
        (y.square().sum() + seen["1.up"].square().sum() + seen["1"].sin().sum()).backward()
    elif kind == "one":
        seen["1"].sin().sum().backward()
        return [kept[0].grad, kept[2].grad]
    elif kind == "twice":
        y.square().sum().backward(retain_graph=True)
        seen["1"].sin().sum().backward()
    elif kind == "hook":
        kept[2].register_hook(lambda g: g * 3)
        y.square().sum().backward()
    elif kind == "parts":
        found = votive.autograd.grad(y.square().sum(), [model[2].weight], retain_graph=True)
        seen["1"].sin().sum().backward()
        return list(found)
    return [t.grad for t in kept if t.is_leaf or t.retains_grad]


@pytest.mark.parametrize("kind", ["plain", "retain", "grad", "aux", "one", "twice", "hook", "parts"])
def test_gradients_go_through_captured_values(model, x, kind) -> None:
    compiled = votive.compile(model)
    for i in range(3):
        found = []
        for f in (model, compiled):
            model.zero_grad()
            votive.manual_seed(i)
            with glass.capture(f, "**") as seen:
                y = f(x)
            found.append((_losses(kind, model, seen, y), [p.grad for p in model.parameters()]))
        for a, b in zip(*found, strict=True):
            for p, q in zip(a, b, strict=True):
                close(q, p)
    assert versions(compiled) == [2]


def test_a_weight_that_was_changed_before_backward_is_noticed(model, x) -> None:
    compiled = votive.compile(model.eval())
    for _ in range(2):
        with glass.capture(compiled, "1") as seen:
            compiled(x)
    with votive.no_grad():
        model[0].up.weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        seen["1"].sum().backward()


def test_what_is_written_in_place_is_looked_at_without_compiling() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 4)).eval()
    compiled = votive.compile(model)
    x = votive.randn(3, 4)
    with votive.no_grad():
        for _ in range(3):
            with glass.capture(compiled, "0", policy="copy") as seen:
                y = compiled(x)
            close(seen["0"], model[0](x))
            close(y, model(x))
            compiled(x)
    assert versions(compiled) == [2]
    assert "a hook or capture reads" in explain(compiled).text()


def test_operators_and_functions_of_calls_are_seen_by_running_as_it_is(model, x) -> None:
    compiled = votive.compile(model.eval())
    compiled(x)
    for at in ("/gelu", lambda call: call.name == "Linear"):
        with glass.capture(model, at) as wanted:
            model(x)
        with glass.capture(compiled, at) as seen:
            compiled(x)
        assert list(seen) == list(wanted)
        for a in wanted:
            close(seen[a], wanted[a])
    compiled(x)
    assert versions(compiled) == [1]


def test_debugger_tree_and_profile_work_as_before(model, x) -> None:
    compiled = votive.compile(model.eval())
    compiled(x)
    with votive.debug(compiled, x) as d:
        d.run(until="1", phase="leave")
        d.value = votive.zeros_like(d.value)
        result = d.finish()
    close(result, model[2](votive.zeros(4, 5, 8)))
    assert "1.up" in [str(n.address) for n in glass.tree(compiled, x).walk()]
    with votive.autograd.detect_anomaly():
        close(compiled(x), model(x))
    close(compiled(x), model(x))


# --- hooks --------------------------------------------------------------------------------------


def test_hooks_are_honoured_from_the_next_call_on_and_are_compiled(model, x) -> None:
    compiled = votive.compile(model.eval())
    plain = model(x)
    close(compiled(x), plain)
    handles = [
        model[0].register_forward_hook(lambda module, args, out: out * 2),
        model[1].up.register_forward_pre_hook(lambda module, args: (args[0] + 1,)),
        model[1].register_forward_hook(lambda module, args, kwargs, out: out + args[0], with_kwargs=True),
    ]
    for n in range(len(handles), -1, -1):
        for _ in range(3):
            close(compiled(x), model(x))
        if n:
            handles[n - 1].remove()
    close(compiled(x), plain)
    assert len(versions(compiled)) >= 2


def test_hooks_for_all_modules_are_seen(model, x) -> None:
    compiled = votive.compile(model.eval())
    compiled(x)
    with nn.modules.module.register_module_forward_hook(lambda module, args, out: out + 1):
        for _ in range(2):
            close(compiled(x), model(x))
    close(compiled(x), model(x))


def test_a_hook_reads_what_it_reads_now(model, x) -> None:
    compiled = votive.compile(model.eval())
    scale = {"by": 2.0}
    model[0].register_forward_hook(lambda module, args, out: out * scale["by"])
    for by in (2.0, 2.0, 3.0, 3.0):
        scale["by"] = by
        close(compiled(x), model(x))


def test_many_hooks_one_after_the_other_do_not_end_compiling(model, x) -> None:
    compiled = votive.compile(model.eval())
    for i in range(12):
        with model[0].register_forward_hook(lambda module, args, out, i=i: out * i):
            for _ in range(2):
                close(compiled(x), model(x))
    assert versions(compiled)


def test_backward_hooks_are_called(model, x) -> None:
    compiled = votive.compile(model.eval())
    compiled(x).sum().backward()
    seen: list[Any] = []
    with model[1].register_full_backward_hook(lambda module, gi, go: seen.append(go[0].shape)):
        for _ in range(2):
            compiled(x).sum().backward()
    assert seen == [x.shape] * 2


# --- edits --------------------------------------------------------------------------------------

steer = votive.linspace(-1, 1, 8)
factor = {"by": 2.0}
EDITS = {
    "a number": {"0.down": 0.0},
    "a tensor": {"0": steer},
    "a function": {"1.up": lambda v: v.relu() * factor["by"]},
    "two at one place": [{"0": lambda v: v * 2}, glass.Edit("0", "add", 1.0)],
    "an input": {"1.up:in": lambda v: v + 1, "0.norm:in": 0.5},
    "scaled": glass.Edit("1.down", "scale", 0.5),
    "added": glass.Edit("0", "add", steer),
    "positions": glass.Edit("0.down", "zero", positions=[1, 3]),
    "features": glass.Edit("1.up", "scale", 3.0, features=[0, 5], samples=[2]),
    "rows": glass.Edit("0", "replace", votive.ones(2, 8), positions=[0, 2]),
    "a mean": glass.Edit("0.down", "mean", votive.arange(8.0)),
}


@pytest.mark.parametrize("measure", [True, False])
@pytest.mark.parametrize("name", EDITS)
def test_edits_are_made_inside_of_the_graph(model, x, name, measure) -> None:
    compiled = votive.compile(model.eval())
    compiled(x)
    found: dict[str, list[Any]] = {"plain": [], "compiled": []}
    for kind, f in (("plain", model), ("compiled", compiled)):
        model.zero_grad()
        with glass.patch(f, EDITS[name], measure=measure) as receipt, glass.capture(f, ["0", "1.up"]) as seen:
            for i in range(4):
                y = f(x + i)
                y.square().sum().backward()
                found[kind] += [y, *(seen[a] for a in seen), *(p.grad for p in model.parameters())]
                model.zero_grad()
        found[kind] += [[(a, s.times, s.reached) for a, s in receipt.sites.items()], receipt.edits]
        found[kind].append([(s.largest, s.relative) for s in receipt.sites.values()])
    for a, b in zip(*found.values(), strict=True):
        if a is None or isinstance(a, votive.Tensor):
            close(b, a)
        elif a is found["plain"][-1]:
            for p, q in zip(a, b, strict=True):
                assert q == pytest.approx(p, rel=1e-4)
        else:
            assert a == b
    close(compiled(x), model(x))
    # Without a receipt of what reads them, edits are traced in the first run, else in the second.
    assert sorted(versions(compiled)) == [1, 2 if measure else 3]


def test_the_same_edits_in_another_block_run_the_same_graph(model, x) -> None:
    compiled = votive.compile(model.eval())
    with votive.no_grad():
        for _ in range(4):
            with glass.patch(compiled, {"0": steer, "1.up": 2.0}, measure=False) as receipt:
                y = compiled(x)
            assert receipt.fired == 2
            with glass.patch(model, {"0": steer, "1.up": 2.0}):
                close(y, model(x))
    assert versions(compiled) == [3]


def test_what_an_edit_reads_is_read_now(model, x) -> None:
    compiled = votive.compile(model.eval())
    direction = votive.ones(8)
    for by in (1.0, 2.0, 2.0, 3.0):
        factor["by"] = by
        direction.fill_(by)
        edits = {"0": direction, "1.up": lambda v: v * factor["by"]}
        with glass.patch(compiled, edits, measure=False):
            y = compiled(x)
        with glass.patch(model, edits):
            close(y, model(x))


def test_skips_swaps_and_operators_are_edited_by_running_as_it_is(model, x) -> None:
    compiled = votive.compile(model.eval())
    compiled(x)
    for edits in (
        {"0": None},
        {"2": nn.Linear(8, 2)},
        {"/gelu": 0.0},
        glass.Edit("0", "mean"),
        glass.Edit("0", "zero", runs=[2]),
    ):
        with glass.patch(model, edits), votive.no_grad():
            wanted = [model(x), model(x)]
        with glass.patch(compiled, edits), votive.no_grad():
            found = [compiled(x), compiled(x)]
        for a, b in zip(found, wanted, strict=True):
            close(a, b)
    assert versions(compiled) == [0]


def test_an_edit_that_meets_nothing_says_so(model, x) -> None:
    compiled = votive.compile(model.eval())
    with pytest.raises(glass.NoMatch):
        glass.patch(compiled, {"0.nrom": 0.0})
    for _ in range(2):
        with pytest.raises(IndexError), glass.patch(compiled, glass.Edit("0", "zero", positions=[9]), measure=False):
            compiled(x)


def test_a_module_that_was_compiled_in_place_shows_the_same(model, x) -> None:
    plain = nn.Sequential(Block(), Block(), nn.Linear(8, 2)).eval()
    plain.load_state_dict(model.state_dict())
    model.eval().compile()
    for i in range(3):
        with glass.capture(plain, "**") as wanted:
            plain(x + i)
        with glass.capture(model, "**") as seen:
            model(x + i)
        assert list(seen) == list(wanted)
        for a in wanted:
            close(seen[a], wanted[a])
    assert versions(model) == [2]


def test_a_compiled_function_shows_the_modules_it_calls(model, x) -> None:
    model.eval()
    step = votive.compile(lambda x: nn.functional.relu(model(x)) + model(x + 1))
    for _ in range(3):
        with glass.capture(model, ["1", "2"]) as seen:
            y = step(x)
        assert seen.runs == 2
        close(seen["1"], model[1](model[0](x + 1)))
        close(y, nn.functional.relu(model(x)) + model(x + 1))
    assert versions(step) == [2]


def test_hooks_that_store_what_they_see_are_called_once_and_in_order(model, x) -> None:
    compiled = votive.compile(model.eval())
    compiled(x)
    seen: list[Any] = []
    for name, module in model.named_modules():
        module.register_forward_hook(lambda module, args, out, name=name: seen.append((name, out)))
    for i in range(3):
        seen.clear()
        model(x + i)
        wanted = list(seen)
        seen.clear()
        compiled(x + i)
        assert [n for n, _ in seen] == [n for n, _ in wanted]
        for (_, a), (_, b) in zip(seen, wanted, strict=True):
            close(a, b)
