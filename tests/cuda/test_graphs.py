"""Graphs: what is recorded is repeated, with gradients too, and what cannot be says so."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import votive as vt


def test_a_graph_repeats_what_was_recorded_on_what_lies_there_now() -> None:
    x, graph = vt.ones(3, device="cuda"), vt.cuda.CUDAGraph()
    assert not vt.cuda.is_current_stream_capturing()
    with vt.cuda.graph(graph):
        assert vt.cuda.is_current_stream_capturing()
        y = x * 2 + vt.tensor(1.0)  # a number of the host is kept with the graph
    for value in (1.0, 4.0):
        x.fill_(value)
        graph.replay()
        assert y.tolist() == [2 * value + 1] * 3
    assert graph.nodes() >= 2
    with pytest.raises(RuntimeError, match="already been captured"):
        with vt.cuda.stream(vt.cuda.Stream()):
            graph.capture_begin()
    graph.reset()
    with pytest.raises(RuntimeError, match="nothing has been captured"):
        graph.replay()


def test_values_cannot_be_read_while_they_are_recorded() -> None:
    x, graph = vt.ones(3, device="cuda"), vt.cuda.CUDAGraph()
    with pytest.raises(vt.cuda.CudaError), vt.cuda.graph(graph):
        x.sum().item()
    assert not vt.cuda.is_current_stream_capturing()
    assert (x + 1).tolist() == [2.0] * 3


def test_streams_that_join_a_capture_are_recorded_with_it() -> None:
    x, graph = vt.ones(3, device="cuda"), vt.cuda.CUDAGraph()
    main, side = vt.cuda.Stream(), vt.cuda.Stream()
    with vt.cuda.graph(graph, stream=main):
        side.wait_stream(main)
        with vt.cuda.stream(side):
            y = x + 1
        main.wait_stream(side)
        z = y * 3
    x.fill_(2)
    graph.replay()
    assert z.tolist() == [9.0] * 3


def test_graphs_may_share_a_pool() -> None:
    pool, x = vt.cuda.graph_pool_handle(), vt.ones(3, device="cuda")
    graphs = [vt.cuda.CUDAGraph(), vt.cuda.CUDAGraph()]
    results = []
    for k, graph in enumerate(graphs):
        with vt.cuda.graph(graph, pool=pool):
            results.append(x + k)
        assert graph.pool() is pool
    for graph in graphs:
        graph.replay()
    assert [r.tolist() for r in results] == [[1.0] * 3, [2.0] * 3]


def test_a_capture_that_cannot_begin_leaves_the_stream_as_it_was() -> None:
    x, graph = vt.ones(3, device="cuda"), vt.cuda.CUDAGraph()
    before = vt.cuda.current_stream()
    with vt.cuda.graph(graph):
        x + 1
    with pytest.raises(RuntimeError, match="already been captured"), vt.cuda.graph(graph):
        pass
    with (
        pytest.raises(NotImplementedError, match="relaxed"),
        vt.cuda.graph(vt.cuda.CUDAGraph(), capture_error_mode="global"),
    ):
        pass
    with pytest.raises(TypeError, match="graph_pool_handle"):
        with vt.cuda.graph(vt.cuda.CUDAGraph(), pool=(0, 1)):
            pass
    assert vt.cuda.current_stream() == before
    with pytest.raises(RuntimeError, match="is not capturing a graph"):
        vt.cuda.CUDAGraph().capture_end()


def test_a_graph_is_kept_looked_at_and_instantiated_when_it_runs(tmp_path: Any) -> None:
    x, graph = vt.ones(3, device="cuda"), vt.cuda.CUDAGraph(keep_graph=True)
    for ask in (graph.nodes, graph.raw_cuda_graph, graph.instantiate, graph.raw_cuda_graph_exec):
        with pytest.raises(RuntimeError):
            ask()
    with vt.cuda.graph(graph):
        y = x + 1
    assert graph.raw_cuda_graph()
    assert graph.nodes() == 1
    with pytest.raises(RuntimeError, match="not instantiated"):
        graph.raw_cuda_graph_exec()
    graph.debug_dump(str(tmp_path / "graph.dot"))
    assert (tmp_path / "graph.dot").read_text().startswith("digraph")
    graph.replay()
    assert y.tolist() == [2.0] * 3
    graph.instantiate()
    graph.replay()
    assert graph.raw_cuda_graph_exec()
    plain = vt.cuda.CUDAGraph()
    with vt.cuda.graph(plain):
        x + 1
    with pytest.raises(RuntimeError, match="keep_graph"):
        plain.raw_cuda_graph()


def test_a_pool_serves_again_when_its_last_graph_is_gone() -> None:
    x, first, second = vt.ones(3, device="cuda"), vt.cuda.CUDAGraph(), vt.cuda.CUDAGraph()
    with vt.cuda.graph(first):
        x + 1
    pool = first.pool()
    first.reset()
    pools = len(vt.cuda.memory._allocator().private)
    with vt.cuda.graph(second, pool=pool):
        y = x + 2
    assert len(vt.cuda.memory._allocator().private) == pools + 1
    second.replay()
    assert y.tolist() == [3.0] * 3
    second.reset()
    assert len(vt.cuda.memory._allocator().private) == pools


def test_replays_draw_by_the_seed_of_the_day() -> None:
    def drawn() -> Any:
        for _ in range(3):  # what is let go of before the first draw is not what draws read
            vt.full((4,), 2.5, device="cuda").exp()
        weights = vt.full((4,), 30.0, device="cuda")
        return [
            vt.rand(3, device="cuda"),
            vt.randperm(9, device="cuda"),
            vt.poisson(weights),
            vt.binomial(weights, vt.full_like(weights, 0.4)),
            vt.distributions.Gamma(weights, weights, validate_args=False).sample(),
        ]

    vt.cuda.manual_seed(1)
    graph = vt.cuda.CUDAGraph()
    with vt.cuda.graph(graph):
        recorded = drawn()
    for seed in (2, 2**63 + 5):
        vt.cuda.manual_seed(seed)
        wanted = [t.tolist() for _ in range(2) for t in drawn()]
        vt.cuda.manual_seed(seed)
        found = []
        for _ in range(2):
            graph.replay()
            found += [t.tolist() for t in recorded]
        assert found == wanted


def test_draws_that_a_graph_cannot_move_on_are_refused() -> None:
    mine = vt.Generator("cuda").manual_seed(3)
    with pytest.raises(RuntimeError, match="default generator"), vt.cuda.graph(vt.cuda.CUDAGraph()):
        vt.rand(3, device="cuda", generator=mine)
    assert vt.rand(3, device="cuda", generator=mine).tolist() == (
        vt.rand(3, device="cuda", generator=mine.manual_seed(3)).tolist()
    )


def test_a_seed_inside_a_capture_is_refused() -> None:
    vt.cuda.manual_seed(3)
    wanted = vt.rand(3, device="cuda").tolist()
    vt.cuda.manual_seed(3)
    with pytest.raises(RuntimeError, match="cannot be seeded"), vt.cuda.graph(vt.cuda.CUDAGraph()):
        vt.cuda.manual_seed(4)
    assert vt.rand(3, device="cuda").tolist() == wanted  # as if nothing had been tried


def test_draws_of_a_graph_give_their_memory_back() -> None:
    def once() -> None:
        graph = vt.cuda.CUDAGraph()
        with vt.cuda.graph(graph):
            vt.rand(3, device="cuda")
        graph.replay()

    once()
    gc.collect()
    before = vt.cuda.memory_allocated()
    once()
    gc.collect()
    assert vt.cuda.memory_allocated() == before


def test_the_graph_of_a_backward_pass_leaves_out_what_the_forward_pass_did() -> None:
    shape = (1, 2, 8, 16)

    def attend(q: Any, k: Any, v: Any) -> Any:
        return vt.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.5)

    vt.manual_seed(0)
    sample = [vt.zeros(shape, device="cuda", requires_grad=True) for _ in range(3)]
    graphed = vt.cuda.make_graphed_callables(attend, tuple(sample), num_warmup_iters=1)
    given = [vt.randn(shape, device="cuda", requires_grad=True) for _ in range(3)]
    weight = vt.randn(shape, device="cuda")
    results = []
    for fn in (graphed, attend):
        vt.cuda.manual_seed(5)
        fn(*given)  # the second call draws other numbers
        out = fn(*given)
        results.append([out, *vt.autograd.grad(out, given, weight)])
    for a, b in zip(*results, strict=True):
        assert vt.allclose(a, b, rtol=1e-4, atol=1e-5)


def test_tables_of_constants_outlive_the_graph_that_met_them_first() -> None:
    x = vt.arange(15.0, device="cuda").reshape(1, 1, 3, 5)  # shapes that no other test has
    shapes = vt.full((5,), 1.5, device="cuda", requires_grad=True)

    def work() -> list[Any]:
        resized = vt.nn.functional.interpolate(x, size=(7, 11), mode="bilinear")
        drawn = vt.distributions.Gamma(shapes, shapes, validate_args=False).rsample()
        return [resized, *vt.autograd.grad(drawn.sum(), shapes)]

    graph = vt.cuda.CUDAGraph()
    with vt.cuda.graph(graph):
        recorded = work()
    vt.cuda.manual_seed(0)
    plain = [t.tolist() for t in work()]  # before the graph ran
    vt.cuda.manual_seed(0)
    graph.replay()
    assert [t.tolist() for t in recorded] == plain
    del recorded
    graph.reset()
    filling = [vt.full((128 * k,), 1e9, device="cuda") for k in range(1, 20)]
    vt.cuda.manual_seed(0)
    assert [t.tolist() for t in work()] == plain
    del filling


def _model() -> Any:
    vt.manual_seed(0)
    return vt.nn.Sequential(vt.nn.Linear(3, 4), vt.nn.ReLU(), vt.nn.Linear(4, 2)).to("cuda")


def test_a_graphed_module_trains_as_the_plain_one() -> None:
    def trained(graphed: bool) -> list[Any]:
        model, head = _model(), vt.nn.Linear(2, 1).to("cuda")
        sample = vt.zeros(2, 3, device="cuda")
        if graphed:
            assert vt.cuda.make_graphed_callables(model, (sample,), num_warmup_iters=1) is model
        optimizer = vt.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
        for k in range(3):
            x = vt.arange(6.0, device="cuda").reshape(2, 3) / (k + 1)
            loss = head(model(x)).square().mean()  # the rest of the step is not graphed
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        assert model(vt.ones(5, 3, device="cuda")).shape == (5, 2)
        return [p.tolist() for p in model.parameters()]

    for a, b in zip(trained(True), trained(False), strict=True):
        assert vt.allclose(vt.tensor(a), vt.tensor(b), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("how", ["callables", "graphed"])
def test_graphs_cast_weights_under_autocast_at_each_replay(how: str) -> None:
    def losses(graphed: bool) -> list[float]:
        model, x = _model(), vt.ones(2, 3, device="cuda")
        optimizer = vt.optim.SGD(model.parameters(), lr=0.1)

        def forward() -> Any:
            return model(x).float().square().mean()

        def step() -> Any:
            loss = forward()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss.detach()

        with vt.autocast("cuda", dtype=vt.bfloat16):
            forward()  # keeps casts of the weights
            if graphed and how == "callables":
                vt.cuda.make_graphed_callables(model, (x,), num_warmup_iters=1)
            elif graphed:
                with vt.no_grad():
                    step, plain = vt.cuda.make_graphed(forward, warmup=1), step
                return [(step().item(), plain())[0] for _ in range(3)]
            return [step().item() for _ in range(3)]

    assert losses(True) == pytest.approx(losses(False), rel=1e-2)


def test_gradients_of_a_graphed_function_accumulate_and_outlive_the_next_call() -> None:
    w = vt.ones(3, device="cuda", requires_grad=True)

    def fn(x: Any, pair: Any) -> Any:
        return {"sum": (x * pair[0]).sum(), "more": [x + pair[1]]}

    x = vt.ones(3, device="cuda").requires_grad_()
    pair = (vt.ones(3, device="cuda"), vt.zeros(3, device="cuda"))
    graphed = vt.cuda.make_graphed_callables(fn, (x, pair), num_warmup_iters=1)
    kept = []
    for scale in (2.0, 5.0):
        given = (vt.full((3,), scale, device="cuda"), pair[1])
        out = graphed(w * 1, given)
        assert out["more"][0].tolist() == [1.0] * 3
        (g,) = vt.autograd.grad(out["sum"], w)
        kept.append(g)
    assert [g.tolist() for g in kept] == [[2.0] * 3, [5.0] * 3]
    with pytest.raises(ValueError, match="captured for"):
        graphed(vt.ones(4, device="cuda"), pair)


def test_what_is_no_tensor_must_stay_what_it_was() -> None:
    x = vt.ones(3, device="cuda")
    graphed = vt.cuda.make_graphed(lambda t, by, how: t * by + how["add"], (x, 2, {"add": 1}), warmup=1)
    assert graphed(x * 2, 2, {"add": 1}).tolist() == [5.0] * 3
    called = vt.cuda.make_graphed_callables(lambda t, by: t * by, (x, 2.0), num_warmup_iters=1)
    for call in (
        lambda: graphed(x, 3, {"add": 1}),
        lambda: graphed(x, 2, {"add": 5}),
        lambda: graphed(x, 2, {"add": 1.0}),
        lambda: graphed(x, 2, {"sub": 1}),
        lambda: called(x, 3.0),
    ):
        with pytest.raises(ValueError, match="must stay as they were"):
            call()
    with pytest.raises(TypeError, match="takes 1 tensors, got 2"):
        graphed(x, x, {"add": 1})


def test_several_callables_are_graphed_together() -> None:
    a, b = _model(), vt.nn.Linear(2, 2).to("cuda")
    x, y = vt.zeros(2, 3, device="cuda"), vt.zeros(2, 2, device="cuda", requires_grad=True)
    wanted = b(a(vt.ones(2, 3, device="cuda")))
    first, second = vt.cuda.make_graphed_callables((a, b), ((x,), (y,)), num_warmup_iters=1)
    out = second(first(vt.ones(2, 3, device="cuda")))
    assert vt.allclose(out, wanted)
    out.sum().backward()
    assert a[0].weight.grad is not None
    with pytest.raises(ValueError, match="2 callables, but 1"):
        vt.cuda.make_graphed_callables((a, b), ((x,),))


def test_modules_with_hooks_are_refused() -> None:
    model = _model()
    model[0].register_forward_hook(lambda *a: None)
    with pytest.raises(RuntimeError, match="no hooks"):
        vt.cuda.make_graphed_callables(model, (vt.zeros(2, 3, device="cuda"),))


def test_a_shared_pool_lives_as_long_as_its_last_graph() -> None:
    pool, x = vt.cuda.graph_pool_handle(), vt.ones(5000, device="cuda")
    first, second = vt.cuda.CUDAGraph(), vt.cuda.CUDAGraph()
    with vt.cuda.graph(first, pool=pool):
        a = x + 1
    with vt.cuda.graph(second, pool=pool):
        b = x + 2
    address = b.data_ptr()
    del a, b
    first.reset()
    others = [vt.zeros(5000, device="cuda") for _ in range(8)]  # must not lie where it writes
    second.replay()
    vt.cuda.synchronize()
    assert not any(t.any().item() for t in others)
    assert address not in [t.data_ptr() for t in others]
    gc.collect()  # what other tests left
    pools = len(vt.cuda.memory._allocator().private)
    del second
    assert len(vt.cuda.memory._allocator().private) == pools - 1


def test_a_graph_that_is_dropped_during_a_capture_ends_later() -> None:
    x = vt.ones(3, device="cuda")
    old, new = vt.cuda.CUDAGraph(), vt.cuda.CUDAGraph()
    with vt.cuda.graph(old):
        x + 1
    pools = len(vt.cuda.memory._allocator().private)
    with vt.cuda.graph(new):
        y = x + 2
        del old
    new.replay()
    assert y.tolist() == [3.0] * 3
    with vt.cuda.graph(vt.cuda.CUDAGraph()):
        x + 3
    assert len(vt.cuda.memory._allocator().private) <= pools + 1


def test_a_capture_that_failed_leaves_no_pool_behind() -> None:
    gc.collect()  # what other tests left
    pools = len(vt.cuda.memory._allocator().private)
    graph = vt.cuda.CUDAGraph()
    with pytest.raises(ZeroDivisionError), vt.cuda.graph(graph):
        vt.ones(3, device="cuda").mul(1 // 0)
    del graph
    assert len(vt.cuda.memory._allocator().private) == pools
