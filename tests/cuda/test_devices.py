"""Two devices: what is made, computed, copied, counted and drawn on each, and what may not meet."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest

import votive as vt
from tests import tiny_sizes
from votive.backends.cuda import runtime as rt
from votive.core.errors import CudaError, DeviceError

from .device import EMULATED, REASON
from .late import emulated, late

COUNT = 0 if REASON else rt.runtime.driver.count
two = pytest.mark.skipif(COUNT < 2, reason="there is only one GPU")


def on(device: int, *shape: int) -> Any:
    return vt.arange(1.0, 1.0 + vt.Size(shape).numel(), device=f"cuda:{device}").reshape(shape)


@two
def test_tensors_live_and_are_computed_where_they_were_placed() -> None:
    a, b = on(0, 2, 3), on(1, 2, 3)
    assert (a.device, b.device) == (vt.device("cuda:0"), vt.device("cuda:1"))
    for x in (b * 2 + 1, b.sum(0), b @ b.t(), b.softmax(-1), b[1:, :2].contiguous(), b.cumsum(0)):
        assert x.device == b.device
    assert vt.equal((b @ b.t()).cpu(), (a @ a.t()).cpu())
    assert vt.cuda.current_device() == 0
    assert b.get_device() == 1


@two
def test_the_current_device_is_what_cuda_means() -> None:
    assert vt.ones(1, device="cuda").device.index == 0
    with vt.cuda.device(1):
        assert vt.cuda.current_device() == 1
        assert vt.ones(1, device="cuda").device.index == 1
        assert vt.tensor([1]).cuda().device.index == 1
        with vt.cuda.device("cuda:0"):
            assert vt.cuda.current_device() == 0
        with vt.cuda.device_of(on(0, 1)):
            assert vt.cuda.current_device() == 0
        with vt.cuda.device(None), vt.cuda.device_of(vt.ones(1)):
            assert vt.cuda.current_device() == 1
    try:
        vt.cuda.set_device("cuda:1")
        assert vt.empty(1, device="cuda").device.index == 1
    finally:
        vt.cuda.set_device(0)


@pytest.mark.parametrize("current", [0, 1])
@two
def test_tensors_move_between_devices_in_any_layout(current: int) -> None:
    x = on(0, 3, 4)
    with vt.cuda.device(current):
        for v in (x, x.t(), x[:, ::2], x[:1].expand(3, 4), x[:0], x[0, 0]):
            y = v.to("cuda:1")
            assert (y.device.index, y.shape) == (1, v.shape)
            assert vt.equal(y.cpu(), v.cpu())
            assert vt.equal(y.to("cuda:0", non_blocking=True), v)
        window = vt.zeros(3, 8, device="cuda:1", dtype=vt.float64)[:, ::2]
        assert vt.equal(window.copy_(x).cpu(), x.cpu().double())
        assert vt.equal(x.cuda(1).cuda(0), x)


@two
def test_tensors_of_two_devices_do_not_meet() -> None:
    text = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cuda:1!"
    for meet in (lambda a, b: a + b, lambda a, b: a @ b.t(), lambda a, b: vt.cat([a, b])):
        with pytest.raises(DeviceError, match=text):
            meet(on(0, 2, 3), on(1, 2, 3))
    with pytest.raises(RuntimeError, match="cuda:1 and cpu!"):
        on(1, 2) + vt.ones(2)
    assert (on(1, 2) + vt.tensor(1.0)).tolist() == [2.0, 3.0]  # numbers may


def test_a_device_that_is_not_there_is_an_error() -> None:
    for make in (
        lambda: vt.ones(1, device="cuda:7"),
        lambda: vt.ones(1).to("cuda:7"),
        lambda: vt.cuda.set_device(7),
        lambda: vt.cuda.Stream(7),
        lambda: vt.cuda.synchronize(7),
    ):
        with pytest.raises(CudaError, match="cuda:7: no such device"):
            make()


@two
def test_memory_is_counted_for_each_device() -> None:
    gc.collect()  # what other tests left
    before = [vt.cuda.memory_allocated(i) for i in (0, 1)]
    kept = vt.empty(1 << 18, device="cuda:1")
    assert vt.cuda.memory_allocated(0) == before[0]
    assert vt.cuda.memory_allocated("cuda:1") == before[1] + kept.nbytes
    assert vt.cuda.mem_get_info(1)[1] >= kept.nbytes
    with vt.cuda.device(1):
        assert vt.cuda.memory_allocated() == before[1] + kept.nbytes
    vt.cuda.reset_peak_memory_stats(1)
    assert vt.cuda.max_memory_allocated(1) == vt.cuda.memory_allocated(1)
    del kept
    vt.cuda.empty_cache()
    assert [vt.cuda.memory_allocated(i) for i in (0, 1)] == before


@two
def test_streams_and_events_belong_to_devices() -> None:
    here, there = vt.cuda.Stream(0), vt.cuda.Stream(1)
    assert (here.device.index, there.device.index) == (0, 1)
    with vt.cuda.stream(there):
        assert vt.cuda.current_device() == 1
        assert vt.cuda.current_stream() == there
        assert vt.cuda.current_stream(0) == vt.cuda.default_stream(0)
        y = vt.ones(3, device="cuda") * 2
    assert vt.cuda.current_device() == 0
    assert vt.cuda.current_stream(1) == vt.cuda.default_stream(1)
    here.wait_stream(there)  # events cross devices, streams' marks do not
    event = there.record_event()
    assert event.device.index == 1
    event.wait(here)
    with pytest.raises(RuntimeError, match="belongs to cuda:1"):
        event.record(here)
    here.synchronize()
    assert y.device.index == 1
    assert event.query()


@two
def test_each_device_draws_from_its_own_generator() -> None:
    vt.cuda.manual_seed_all(3)
    a = vt.rand(4, device="cuda:0")
    b = vt.rand(4, device="cuda:1")
    assert vt.equal(a.cpu(), b.cpu())
    states = vt.cuda.get_rng_state_all()
    c = [vt.rand(4, device=f"cuda:{i}").cpu() for i in (0, 1)]
    vt.cuda.set_rng_state_all(states)
    assert [vt.rand(4, device=f"cuda:{i}").tolist() for i in (0, 1)] == [t.tolist() for t in c]
    with vt.cuda.device(1):
        vt.cuda.manual_seed(5)
    assert vt.cuda.initial_seed() == 3
    assert vt.cuda.default_generators[1].initial_seed() == 5


@two
def test_gradients_return_to_the_devices_they_belong_to() -> None:
    a = on(0, 3).requires_grad_()
    b = on(1, 3).requires_grad_()
    y = (a * 2).to("cuda:1") * b
    z = y.to("cuda:0").sum() * a.sum()
    z.backward()
    assert (a.grad.device.index, b.grad.device.index) == (0, 1)
    x = vt.tensor([1.0, 2.0, 3.0])
    p, q = x.clone().requires_grad_(), x.clone().requires_grad_()
    ((p * 2 * q).sum() * p.sum()).backward()
    assert vt.equal(a.grad.cpu(), p.grad)
    assert vt.equal(b.grad.cpu(), q.grad)


@two
def test_a_module_trains_on_the_second_device_while_the_first_is_current() -> None:
    def losses(device: str) -> list[float]:
        vt.manual_seed(0)
        model = vt.nn.Sequential(vt.nn.Linear(4, 3), vt.nn.GELU(), vt.nn.LayerNorm(3)).to(device)
        assert all(p.device == vt.device(device) for p in model.parameters())
        optimizer = vt.optim.AdamW(model.parameters(), lr=0.1, fused=True)
        scaler = vt.amp.GradScaler(vt.device(device).type, init_scale=8.0)
        x = vt.arange(8.0).reshape(2, 4).to(device) / 8
        out = []
        for _ in range(2):
            optimizer.zero_grad()
            loss = (model(x) - 1).square().mean()
            scaler.scale(loss).backward()
            vt.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            scaler.step(optimizer)
            scaler.update()
            out.append(loss.item())
        return out

    assert losses("cuda:1") == pytest.approx(losses("cpu"), rel=1e-5)
    assert vt.cuda.current_device() == 0


@two
def test_parameters_on_two_devices_are_scaled_and_left_out_together() -> None:
    params = [on(0, 2).requires_grad_(), on(1, 2).requires_grad_()]
    optimizer = vt.optim.AdamW(params, fused=True)
    scaler = vt.amp.GradScaler("cuda", init_scale=4.0)
    scaler.scale(vt.ones((), device="cuda:0"))
    before = [p.tolist() for p in params]
    params[0].grad = vt.ones(2, device="cuda:0")
    params[1].grad = vt.tensor([1.0, float("inf")], device="cuda:1")
    scaler.step(optimizer)
    scaler.update()
    assert [p.tolist() for p in params] == before
    assert scaler.get_scale() == 2.0


@two
def test_graphs_are_captured_and_replayed_on_their_device() -> None:
    graphs, results, inputs = [], [], [on(0, 3), on(1, 3)]
    for i, x in enumerate(inputs):
        graph = vt.cuda.CUDAGraph()
        with vt.cuda.device(i), vt.cuda.graph(graph):
            results.append(x * 2 + 1)
        graphs.append(graph)
    for x in inputs:
        x.fill_(5)
    for graph in graphs:
        graph.replay()
    assert [r.device.index for r in results] == [0, 1]
    assert [r.tolist() for r in results] == [[11.0] * 3] * 2


def test_events_serve_threads_that_have_used_no_device() -> None:
    begin, end = (vt.cuda.Event(enable_timing=True, blocking=True) for _ in range(2))
    begin.record()
    vt.ones(3, device="cuda") + 1
    end.record()
    found: list[Any] = []

    def look() -> None:
        try:
            end.synchronize()
            found.extend([end.query(), begin.elapsed_time(end) >= 0])
            with vt.cuda.profiler.profile():
                vt.cuda.Stream.priority_range()
            events.clear()
        except Exception as e:
            found.append(e)

    events = [vt.cuda.Event()]
    events[0].record()
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [True, True]


def test_a_stream_may_be_entered_while_it_is_entered() -> None:
    side, before = vt.cuda.Stream(), vt.cuda.current_stream()
    with side:
        with side:
            assert vt.cuda.current_stream() == side
        assert vt.cuda.current_stream() == side
    assert vt.cuda.current_stream() == before
    with pytest.raises(CudaError, match="no such device"):
        vt.cuda.current_stream(99)


def test_a_stream_has_the_priority_that_was_asked_for() -> None:
    least, greatest = vt.cuda.Stream.priority_range()
    assert vt.cuda.Stream(priority=-1).priority == max(-1, greatest)
    assert vt.cuda.Stream(priority=100).priority == least
    assert vt.cuda.Stream(priority=-100).priority == greatest


@two
def test_what_is_graphed_runs_on_the_device_of_its_tensors() -> None:
    x = on(1, 2, 3)
    double = vt.cuda.make_graphed(lambda t: t * 2, (x,), warmup=1)
    assert double(on(1, 2, 3) * 4).tolist() == (on(1, 2, 3) * 8).tolist()
    layer = vt.nn.Linear(3, 2).to("cuda:1")
    wanted = layer(on(1, 2, 3) * 4)
    layer = vt.cuda.make_graphed_callables(layer, (x,))
    assert vt.allclose(layer(on(1, 2, 3) * 4), wanted)
    assert vt.cuda.current_device() == 0
    with pytest.warns(UserWarning, match="Graph is empty"), vt.cuda.graph(vt.cuda.CUDAGraph()):
        x + 1


@two
def test_texts_are_generated_on_a_device_that_is_not_the_current_one() -> None:
    from votive.models import LlamaConfig, LlamaForCausalLM

    vt.manual_seed(0)
    config = LlamaConfig(
        **tiny_sizes.transformer(8, 8, layers=1, heads=2, vocab=20, kv_heads=1), max_position_embeddings=32
    )
    model, ids = LlamaForCausalLM(config).eval(), vt.tensor([[1, 2, 3]])
    wanted = model.generate(ids, max_new_tokens=17, do_sample=False)
    model.to("cuda:1")
    found = model.generate(ids.to("cuda:1"), max_new_tokens=17, do_sample=False)
    assert found.tolist() == wanted.tolist()


@emulated
@two
def test_a_copy_between_devices_is_in_order_on_both_sides() -> None:
    with late():
        x = on(0, 4000) * 2
        y = x.to("cuda:1") + 1
        del x
        other = [vt.zeros(4000, device="cuda:0") for _ in range(3)]  # may take x's memory
        assert y[0].item() == 3.0
        assert not other[0].any().item()


@emulated
@two
def test_the_emulated_driver_refuses_memory_of_another_device() -> None:
    assert EMULATED
    x = on(1, 3)
    with pytest.raises(CudaError, match="cuda:0 was given memory of cuda:1"):
        rt.runtime.driver.fill_bytes(x.data_ptr(), 0, 4, 0)


@two
def test_peers_and_properties() -> None:
    assert vt.cuda.device_count() == COUNT
    assert vt.cuda.can_device_access_peer(0, 1) in (True, False)
    assert vt.cuda.get_device_properties(1).name == vt.cuda.get_device_name(1)
    with pytest.raises(ValueError, match="expected a cuda device"):
        vt.cuda.get_device_name("cpu")


def test_any_number_of_streams_is_made_of_a_few() -> None:
    made = {vt.cuda.Stream().cuda_stream for _ in range(100)}
    assert 2 <= len(made) <= 32
    least, greatest = vt.cuda.Stream.priority_range()
    assert greatest <= least
    urgent = vt.cuda.Stream(priority=-1)
    assert urgent.cuda_stream not in made
    assert urgent.priority <= 0
    assert vt.cuda.ExternalStream(urgent.cuda_stream) == urgent


def test_a_forked_process_is_told_to_be_spawned() -> None:
    assert not rt.runtime.forked
    rt.runtime.forked = True
    try:
        with pytest.raises(CudaError, match="forked subprocess"):
            rt.runtime.start()
    finally:
        rt.runtime.forked = False
