"""One text over several ranks: ring attention, its gradients, and training as in one process."""

from __future__ import annotations

from typing import Any

import pytest

import votive
import votive.distributed as dist
import votive.models as models
from votive import nn
from votive.distributed import ring_attention as ring_attention_file
from votive.distributed.ring_attention import ring_attention
from votive.distributed.tensor.experimental import context_parallel, context_parallel_unshard
from votive.distributed.tensor.experimental.context_parallel import order
from votive.nn.parallel import DistributedDataParallel


def ring(causal: bool, balanced: bool, shared: int, dtype: Any) -> None:
    n, me = dist.get_world_size(), dist.get_rank()
    g = votive.Generator().manual_seed(2)
    q = votive.randn(2, 4, 4 * n, 8, generator=g, dtype=dtype).requires_grad_()
    k, v = (votive.randn(2, shared, 4 * n, 8, generator=g, dtype=dtype).requires_grad_() for _ in range(2))
    by = votive.randn(2, 4, 4 * n, 8, generator=g, dtype=dtype)
    wanted = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
    wanted.backward(by)
    places = order(4 * n, n) if balanced else list(range(4 * n))
    mine = votive.tensor(places).chunk(n)[me]
    parts = [t.detach().index_select(2, mine).requires_grad_() for t in (q, k, v)]
    found = ring_attention(*parts, dist.group.WORLD, is_causal=causal, balanced=balanced)
    found.backward(by.index_select(2, mine))
    close = 1e-10 if dtype is votive.float64 else 2e-5
    assert votive.allclose(found, wanted.index_select(2, mine), atol=close)
    for t, part in zip((q, k, v), parts, strict=True):
        assert votive.allclose(part.grad, t.grad.index_select(2, mine), atol=close)


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_in_a_ring_is_attention(ranks: int, causal: bool) -> None:
    for balanced in (True, False):
        dist.simulate(ring, ranks, causal, balanced, 4, votive.float64)
    dist.simulate(ring, ranks, causal, True, 2, votive.float32)


def test_gradients_are_made_some_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring_attention_file, "SCORES", 50)
    dist.simulate(ring, 2, True, True, 2, votive.float64)


def model() -> Any:
    votive.manual_seed(0)
    config = models.LlamaConfig(
        vocab_size=17, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64,
    )  # fmt: skip
    return models.LlamaForCausalLM(config)


def train(parallel: bool) -> list[float]:
    net: Any = model()
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    if parallel:
        net = DistributedDataParallel(net)
    optimizer = votive.optim.SGD(net.parameters(), lr=0.5)
    g, found = votive.Generator().manual_seed(4), []
    for _ in range(3):
        text = votive.randint(0, 17, (2, 17), generator=g)
        ids, labels = text[:, :-1].clone(), text[:, 1:].clone()
        at = votive.arange(16).repeat(2, 1)
        optimizer.zero_grad()

        def run(ids: Any, labels: Any, at: Any) -> Any:
            logits = net(ids, position_ids=at).logits
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
            loss.backward()
            return loss.detach()

        if parallel:
            with context_parallel(mesh, buffers=[ids, labels, at], buffer_seq_dims=[1, 1, 1]):
                assert ids.shape[1] == 16 // mesh.size()
                loss = run(ids, labels, at)
            assert ids.shape[1] == 16
            dist.all_reduce(loss, dist.ReduceOp.AVG)
        else:
            loss = run(ids, labels, at)
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_text_over_ranks_trains_as_in_one_process(ranks: int) -> None:
    wanted = dist.simulate(train, 1, False)[0]
    for found in dist.simulate(train, ranks, True):
        assert found == pytest.approx(wanted, rel=1e-5)


def refusals() -> None:
    mesh = dist.init_device_mesh("cpu", (2,))
    x = votive.randn(1, 2, 8, 4)
    sdpa = nn.functional.scaled_dot_product_attention
    with context_parallel(mesh, buffers=[x], buffer_seq_dims=[2]):
        with pytest.raises(NotImplementedError, match="attn_mask"):
            sdpa(x, x, x, votive.ones(4, 4, dtype=votive.bool))
        with pytest.raises(NotImplementedError, match="dropout"):
            sdpa(x, x, x, dropout_p=0.1)
        whole = context_parallel_unshard(mesh, [x], [2])[0]
    assert votive.equal(whole, x)
    kept = votive.arange(8)
    with context_parallel(mesh, buffers=[kept], buffer_seq_dims=[0], no_restore_buffers={kept}):
        pass
    assert kept.shape[0] == 4
    odd = votive.arange(6)
    with pytest.raises(ValueError, match="multiple of 4"), context_parallel(mesh, buffers=[odd], buffer_seq_dims=[0]):
        pass
    with pytest.raises(ValueError, match="same number of elements"), context_parallel(mesh, buffers=[odd]):
        pass
    with (
        pytest.raises(ValueError, match="equally many"),
        context_parallel(mesh, buffers=[odd, votive.arange(8)], buffer_seq_dims=[0, 0]),
    ):
        pass


def test_what_a_ring_cannot_do_is_refused() -> None:
    dist.simulate(refusals, 2)
