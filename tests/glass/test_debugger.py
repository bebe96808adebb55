"""The debugger: where it stops, what can be changed, and that going back is exact."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref

import pytest

import votive
from votive import glass, nn

from .nets import Recursive, net, x
from .test_capture import clean


def trace(d: glass.Debugger) -> list[str]:
    out = [f"{d.phase} {d.address}"]
    while d.step() is not None:
        out.append(f"{d.phase} {d.address}")
    return out


def test_step_visits_the_beginning_and_the_end_of_every_call() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    with votive.debug(model, votive.ones(1, 2)) as d:
        assert trace(d) == [
            "enter ",
            "enter 0",
            "enter 0/linear#0",
            "leave 0/linear#0",
            "leave 0",
            "enter 1",
            "enter 1/relu#0",
            "leave 1/relu#0",
            "leave 1",
            "leave ",
        ]
        assert d.ended
    with votive.debug(model, votive.ones(1, 2), ops=False) as d:
        assert trace(d) == ["enter ", "enter 0", "leave 0", "enter 1", "leave 1", "leave "]


def test_the_result_is_that_of_a_plain_run() -> None:
    model, data = net().eval(), x()
    with votive.debug(model, data, scale=2.0) as d:
        got = d.finish()
    assert votive.equal(got["out"], model(data, scale=2.0)["out"])


def test_over_and_out_skip_what_is_inside() -> None:
    model = net().eval()
    with votive.debug(model, x()) as d:
        d.run(until="blocks.0")
        d.step()
        assert str(d.address) == "blocks.0.norm"
        d.over()
        assert (d.phase, str(d.address)) == ("leave", "blocks.0.norm")
        d.over()
        assert (d.phase, str(d.address)) == ("enter", "blocks.0.lin")
        d.out()
        assert (d.phase, str(d.address)) == ("leave", "blocks.0")
        d.over()
        assert (d.phase, str(d.address)) == ("enter", "blocks.1")
        d.over()
        assert (d.phase, str(d.address)) == ("leave", "blocks.1")
        d.out()
        assert (d.phase, str(d.address)) == ("leave", "")
        assert d.out() is None
        assert d.ended


def test_run_stops_at_addresses_conditions_and_breakpoints() -> None:
    model = net().eval()
    with votive.debug(model, x()) as d:
        assert str(d.run(until="blocks.1.lin")) == "blocks.1.lin"
        assert [str(a) for a in d.stack] == ["", "blocks.1", "blocks.1.lin"]
        d.jump(0)
        big = d.run(when=lambda d: d.value is not None and d.value.abs().max() > 0.5)
        assert big is not None
        assert d.phase == "leave"
        assert d.value.abs().max() > 0.5
        point = d.break_at("head", phase="leave")
        d.jump(0)
        assert str(d.run()) == "head"
        assert (d.phase, point.hits) == ("leave", 1)
        d.clear(point)
        d.jump(0)
        assert d.run() is None


def test_a_nan_is_found_where_it_arises() -> None:
    model = net().eval()
    with votive.no_grad():
        model.blocks[1].lin.weight[0, 0] = float("nan")
    with votive.debug(model, x()) as d:
        found = d.run(when=lambda d: d.value is not None and d.value.isnan().any())
        assert str(found) == "blocks.1.lin/linear#0"


def test_values_can_be_replaced_before_and_after_a_call() -> None:
    model, data = net().eval(), x()
    zeros = votive.zeros(2, 5, 4)
    with votive.debug(model, data) as d:
        d.run(until="head")
        d.value = zeros
        got = d.finish()["out"]
    assert votive.equal(got, model.head(zeros))
    with votive.debug(model, data) as d:
        d.run(until="blocks.0", phase="leave")
        d.value = zeros
        got = d.finish()["out"]
    with glass.patch(model, {"blocks.0": zeros}):
        assert votive.equal(got, model(data)["out"])


def test_modules_and_operators_can_be_skipped_and_modules_swapped() -> None:
    model, data = net().eval(), x()
    with votive.debug(model, data) as d:
        d.run(until="blocks.1")
        d.skip()
        got = d.finish()["out"]
    with glass.skip(model, "blocks.1"):
        assert votive.equal(got, model(data)["out"])
    with votive.debug(model, data) as d:
        d.run(until="blocks.0/tanh")
        d.skip(votive.zeros(2, 5, 4))
        d.run(until="blocks.0", phase="leave")
        assert votive.equal(d.value, data)
    other = nn.Linear(4, 3)
    with votive.debug(model, data) as d:
        d.run(until="head")
        d.swap(other)
        out = d.finish()
    assert votive.equal(out["out"], other(out["hidden"]))
    assert votive.equal(model(data)["out"], model.head(out["hidden"]))


def test_back_repeats_the_run_exactly_with_random_numbers_and_statistics() -> None:
    votive.manual_seed(3)
    model = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 4)).train()
    data = votive.randn(6, 4)
    with votive.debug(model, data) as d:
        d.run(until="1", phase="leave")
        dropped, mean = d.value.clone(), model[0].running_mean.clone()
        d.run(until="2", phase="leave")
        d.back(4)
        assert d.index >= 0
        d.jump(0)
        d.run(until="1", phase="leave")
        assert votive.equal(d.value, dropped)
        assert votive.equal(model[0].running_mean, mean)
        first = d.finish()
    votive.manual_seed(3)
    votive.randn(6, 4)
    assert first.shape == (6, 4)


def test_back_keeps_earlier_changes_and_drops_later_ones() -> None:
    model = nn.Sequential(nn.Identity(), nn.Identity(), nn.Identity())
    with votive.debug(model, votive.zeros(1)) as d:
        d.run(until="0", phase="leave")
        d.value = votive.ones(1)
        d.run(until="1", phase="leave")
        d.value = votive.full((1,), 5.0)
        at = d.index
        d.run(until="2", phase="leave")
        assert d.value.item() == 5.0
        d.jump(at)
        assert d.value.item() == 1.0
        assert d.finish().item() == 1.0


def test_back_at_the_end_goes_to_the_last_event() -> None:
    model = nn.Sequential(nn.Identity())
    with votive.debug(model, votive.zeros(1)) as d:
        d.finish()
        d.back()
        assert (d.phase, str(d.address)) == ("leave", "")
        d.back(2)
        assert (d.phase, str(d.address)) == ("enter", "0")
        d.back(99)
        assert (d.phase, str(d.address)) == ("enter", "")


def test_an_input_that_the_run_overwrites_cannot_be_put_back() -> None:
    class InPlace(nn.Module):
        def forward(self, t: votive.Tensor) -> votive.Tensor:
            return t.add_(1)

    with votive.debug(InPlace(), votive.zeros(1)) as d:
        d.finish()
        with pytest.raises(RuntimeError, match="input 0 was changed in place"):
            d.back()


def test_an_error_stops_at_the_failing_operator_with_its_inputs() -> None:
    class Bad(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(2, 3)

        def forward(self, t: votive.Tensor) -> votive.Tensor:
            return self.lin(t) @ weight

    weight, model = votive.ones(4, 4), Bad()
    with votive.debug(model, votive.ones(1, 2)) as d:
        d.run()
        assert (d.phase, str(d.address)) == ("error", "/matmul#0")
        assert [tuple(i.shape) for i in d.inputs] == [(1, 3), (4, 4)]
        assert "inner sizes differ" in str(d.error)
        with pytest.raises(RuntimeError, match="inner sizes differ"):
            d.step()
        d.back()
        assert (d.phase, str(d.address)) == ("leave", "lin")
    assert clean(model)


def test_the_backward_pass_is_stepped_through_with_addresses() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    with votive.debug(model, votive.ones(1, 2), loss=lambda out: out.sum()) as d:
        d.run(until=lambda frame: frame.kind == "grad" and frame.address.op == "tanh")
        assert str(d.address) == "1/tanh#0"
        assert votive.equal(d.inputs[0], votive.ones(1, 2))
        d.finish()
    grad, model[0].weight.grad = model[0].weight.grad, None
    model(votive.ones(1, 2)).sum().backward()
    assert votive.equal(grad, model[0].weight.grad)


def test_a_gradient_can_be_replaced_and_the_backward_pass_repeated() -> None:
    model = nn.Sequential(nn.Linear(2, 2, bias=False))
    data = votive.ones(1, 2)
    with votive.debug(model, data, loss=lambda out: out.sum()) as d:
        d.run(until=lambda frame: frame.kind == "grad" and frame.address.op == "linear")
        d.value = votive.full((1, 2), 10.0)
        d.finish()
        assert votive.equal(model[0].weight.grad, votive.full((2, 2), 10.0))
        d.jump(0)
        d.finish()
    assert votive.equal(model[0].weight.grad, votive.ones(2, 2))


def test_a_pause_leaves_the_outside_as_it_was() -> None:
    class NoGrad(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Identity()

        def forward(self, t: votive.Tensor) -> votive.Tensor:
            with votive.no_grad():
                return self.inner(t)

    model = NoGrad()
    with votive.debug(model, votive.ones(1)) as d:
        d.run(until="inner")
        assert votive.is_grad_enabled()
        other = net().eval()
        other(x())  # seen by nobody
        assert str(d.address) == "inner"
        with votive.no_grad():
            d.step()
            assert not votive.is_grad_enabled()
        assert votive.is_grad_enabled()


def test_debuggers_nest() -> None:
    a, b = nn.Sequential(nn.Identity()), nn.Sequential(nn.Identity())
    with votive.debug(a, votive.ones(1)) as outer:
        outer.run(until="0")
        with votive.debug(b, votive.zeros(1)) as inner:
            inner.run(until="0")
            assert inner.value.item() == 0.0
            assert outer.value.item() == 1.0
            assert inner.finish().item() == 0.0
        assert outer.finish().item() == 1.0
    assert clean(a)
    assert clean(b)


def test_generators_and_recursion_inside_forward_are_no_obstacle() -> None:
    class Lazy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.ModuleList(nn.Identity() for _ in range(3))

        def forward(self, t: votive.Tensor) -> votive.Tensor:
            for value in (part(t) + i for i, part in enumerate(self.parts)):
                t = t + value
            return t

    with votive.debug(Lazy(), votive.ones(1)) as d:
        d.run(until="parts.2")
        assert d.finish().item() == Lazy()(votive.ones(1)).item()
    model = Recursive()
    with votive.debug(model, votive.ones(1, 2), ops=False) as d:
        assert [str(a) for a in d.stack] == [""]
        d.run(until="lin#2")
        assert [str(a) for a in d.stack] == ["", "#1", "#2", "lin#2"]


def test_each_thread_has_its_own_debugger() -> None:
    model, found = nn.Sequential(nn.Identity()), []

    def work(value: float) -> None:
        with votive.debug(model, votive.full((1,), value)) as d:
            d.run(until="0")
            found.append((value, d.value.item(), d.finish().item()))

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(found) == [(float(i), float(i), float(i)) for i in range(4)]


def test_an_abandoned_debugger_frees_its_memory_and_its_hooks() -> None:
    model = net().eval()
    d = votive.debug(model, x())
    d.run(until="head")
    held = weakref.ref(d.value)
    dead = weakref.ref(d)
    del d
    gc.collect()
    assert dead() is None
    assert held() is None
    assert clean(model)


def test_steps_is_a_plain_loop_that_can_change_the_run() -> None:
    model, data = net().eval(), x()
    events = []
    run = votive.steps(model, data, at="blocks.*")
    try:
        while True:
            event = next(run)
            events.append(f"{event.phase} {event.address}")
            if event.phase == "leave":
                event.value = votive.zeros_like(event.value)
    except StopIteration as end:
        out = end.value
    assert events == ["enter blocks.0", "leave blocks.0", "enter blocks.1", "leave blocks.1"]
    assert votive.equal(out["out"], model.head(votive.zeros(2, 5, 4)))
    assert clean(model)


def test_leaving_the_loop_early_leaves_nothing_behind() -> None:
    model = net().eval()
    for _ in votive.steps(model, x()):
        break
    gc.collect()
    assert clean(model)


WRONG = [
    (lambda d: d.skip(), "has run already"),
    (lambda d: d.swap(nn.Identity()), "has run already"),
    (lambda d: d.back(0), "must be positive"),
    (lambda d: d.jump(-1), "counted from 0"),
]


@pytest.mark.parametrize(("act", "text"), WRONG)
def test_what_cannot_be_done_here_is_refused(act: object, text: str) -> None:
    with votive.debug(nn.Sequential(nn.Identity()), votive.ones(1)) as d:
        d.run(until="0", phase="leave")
        with pytest.raises(ValueError, match=text):
            act(d)  # type: ignore[operator]
    with pytest.raises(RuntimeError, match="closed"):
        d.step()


def test_a_run_that_waits_at_the_end_of_a_program_is_no_noise() -> None:
    code = "import votive\nd = votive.debug(votive.nn.Linear(2, 2), votive.ones(1, 2))\nd.step()\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_run_that_waits_changes_no_bit_of_what_others_compute() -> None:
    from .session_models import model

    def digests() -> list[str]:
        session = glass.Session(model("llama"), None, [5, 17, 3], do_sample=True, seed=1)
        session.step(3)
        return [n.digest for n in session.nodes]

    alone = digests()
    with votive.no_grad(), votive.debug(model("llama"), votive.tensor([[1, 2, 3]])) as d:
        d.run(until="layers.1")
        assert digests() == alone
        with glass.capture(model("llama"), "/linear"):
            assert digests() == alone
