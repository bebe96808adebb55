"""Programs as users write them, compiled: what rules join, and that results are those of the programs themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive as vt
from benchmarks.compiled.programs import SHAPES, chain, decoder, empty_cache, gpt


def _close(one: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-5) -> None:
    one, other = (v.detach().cpu().double().numpy() for v in (one, other))
    np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)


def _entries(compiled: Any) -> list[Any]:
    inner = compiled.__dict__.get("_compiled", compiled)
    assert not inner.eager, inner.eager
    return [e for versions in inner.entries.values() for e in versions]


def _model(shape: str) -> Any:
    vt.manual_seed(0)
    with vt.device("cuda"):
        return decoder(vt, shape).to(dtype=vt.bfloat16).eval()


@pytest.mark.parametrize("rows", [1, 3])
def test_a_step_of_decoding_is_five_joined_calls_a_layer(rows: int) -> None:
    model = _model("tiny")
    compiled = vt.compile(model)
    caches = [empty_cache(vt, "tiny", rows, "cuda") for _ in range(2)]
    position = vt.zeros(1, dtype=vt.int64, device="cuda")
    ids = vt.full((rows, 1), 7, dtype=vt.int64, device="cuda")
    with vt.no_grad():
        for _ in range(6):  # the first is traced, those after the third are replayed on a GPU
            found, wanted = compiled(ids, position, caches[0]), model(ids, position, caches[1])
            for ours, theirs in zip(caches[0], caches[1], strict=True):
                for a, b in zip(ours, theirs, strict=True):
                    _close(a, b, rtol=0.03, atol=0.03)
            assert found.shape == wanted.shape
            position.add_(1)
            ids.copy_(wanted)
    (entry,) = _entries(compiled)
    names = [n.op.name for n in entry.graph.nodes if not n.is_view]
    layers = SHAPES["tiny"][1]
    for name, count in (("_norm_linear", 2 * layers + 1), ("_rotate_and_attend", layers), ("_linear_add", 2 * layers)):
        assert names.count(name) == count, names
    assert "index_copy" not in names
    assert "_attention" not in names


def test_a_mask_that_is_not_known_is_left_alone() -> None:
    """Only a mask that lets through what is kept up to the position may be joined."""

    model = _model("tiny")
    block = model.blocks[0].attention
    seen = vt.ones(1, 1, 1, SHAPES["tiny"][7], dtype=vt.bool, device="cuda")
    seen[..., 3:] = False
    args = (vt.ones(1, 16, device="cuda", dtype=vt.bfloat16),) * 2

    def run(x: Any, keys: Any, values: Any, position: Any, mask: Any) -> Any:
        return block(x, *args, keys, values, position, mask)

    x = vt.randn(1, 1, 64, device="cuda", dtype=vt.bfloat16)
    position = vt.full((1,), 2, dtype=vt.int64, device="cuda")
    with vt.no_grad():
        results = []
        for fn in (run, vt.compile(run)):
            (keys, values), *_ = empty_cache(vt, "tiny", 1, "cuda")
            results.append((fn(x, keys, values, position, seen), keys, values))
    for a, b in zip(*results, strict=True):
        _close(a, b, rtol=0.03, atol=0.03)


@pytest.mark.parametrize("plain", [True, False])
def test_training_steps_under_autocast(plain: bool) -> None:
    losses = []
    for compile in (False, True):
        vt.manual_seed(0)
        sizes: dict[str, Any] = {"vocabulary": 96, "width": 32, "layers": 2, "heads": 2, "length": 16, "plain": plain}
        model = gpt(vt, **sizes).to("cuda")
        optimizer = vt.optim.AdamW(model.parameters(), lr=1e-2)
        fn = vt.compile(model) if compile else model
        ids, targets = (vt.randint(0, 96, (2, 16), device="cuda") for _ in range(2))
        found = []
        for _ in range(6):
            with vt.autocast("cuda", dtype=vt.bfloat16):
                loss = fn(ids, targets)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            found.append(loss.item())
        losses.append(found)
        if compile:
            (entry,) = _entries(fn)
            names = [n.op.name for n in entry.graph.nodes]
            assert "_into_window" not in names  # gradients of q, k and v are put side by side
            assert "_add_norm" in names
            assert any(n.form == "over" for n in entry.graph.nodes)  # the logits' gradient lies where they were
    assert losses[0][-1] < losses[0][0] - 0.5
    assert losses[1] == pytest.approx(losses[0], rel=0.02)


def test_backward_a_second_time_reads_what_was_kept() -> None:
    vt.manual_seed(0)
    model = gpt(vt, vocabulary=64, width=32, layers=1, heads=2, length=8, plain=True).to("cuda")
    compiled = vt.compile(model, mode="max-autotune-no-cudagraphs")
    ids = vt.randint(0, 64, (2, 8), device="cuda")
    for _ in range(2):
        loss = compiled(ids, ids)
        loss.backward(retain_graph=True)
        first = [p.grad.clone() for p in model.parameters()]
        for p in model.parameters():
            p.grad = None
        loss.backward()
        for a, p in zip(first, model.parameters(), strict=True):
            _close(a, p.grad)
            p.grad = None


@pytest.mark.parametrize("dtype", [vt.float32, vt.bfloat16, vt.float64])
def test_a_chain_of_elementwise_calls(dtype: Any) -> None:
    vt.manual_seed(0)
    fn = chain(vt)
    compiled = vt.compile(fn)
    for _ in range(4):
        x, y = (vt.randn(5, 37, dtype=dtype, device="cuda", requires_grad=True) for _ in range(2))
        wanted = fn(x, y)
        wanted.sum().backward()
        grads = x.grad, y.grad
        x.grad = y.grad = None
        found = compiled(x, y)
        found.sum().backward()
        close = {"rtol": 0.05, "atol": 0.15} if dtype is vt.bfloat16 else {}
        _close(found, wanted, **close)
        for a, b in zip((x.grad, y.grad), grads, strict=True):
            _close(a, b, **({"rtol": 0.05, "atol": 0.05} if close else {}))


def test_gradients_of_a_replay_stay_what_they_were() -> None:
    """Whoever holds gradients of one step sees them unchanged by the next, and sums of gradients are sums."""
    vt.manual_seed(0)
    net = vt.nn.Sequential(vt.nn.Linear(6, 8), vt.nn.Tanh(), vt.nn.Linear(8, 3)).to("cuda")
    compiled = vt.compile(net)
    xs = [vt.randn(4, 6, device="cuda") for _ in range(9)]

    def gradients(fn: Any, x: Any) -> list[Any]:
        for p in net.parameters():
            p.grad = None
        fn(x).square().sum().backward()
        return [p.grad for p in net.parameters()]

    held = []
    for x in xs:
        wanted = [g.clone() for g in gradients(net, x)]
        found = gradients(compiled, x)
        held.append((found, wanted))
    for found, wanted in held:
        for a, b in zip(found, wanted, strict=True):
            _close(a, b)
    sums = [vt.zeros_like(p) for p in net.parameters()]
    for p in net.parameters():
        p.grad = None
    for x in xs:
        compiled(x).square().sum().backward()
    for _, wanted in held:
        for total, g in zip(sums, wanted, strict=True):
            total.add_(g)
    for p, total in zip(net.parameters(), sums, strict=True):
        _close(p.grad, total, rtol=1e-4, atol=1e-4)


def test_a_position_behind_the_cache_is_an_error() -> None:
    model = _model("tiny")
    compiled = vt.compile(model)
    cache = empty_cache(vt, "tiny", 1, "cuda")
    ids = vt.full((1, 1), 7, dtype=vt.int64, device="cuda")
    with vt.no_grad():
        for at in (0, 1):
            compiled(ids, vt.full((1,), at, dtype=vt.int64, device="cuda"), cache)
        with pytest.raises(RuntimeError, match="out of bounds"):
            compiled(ids, vt.full((1,), SHAPES["tiny"][7], dtype=vt.int64, device="cuda"), cache).tolist()
