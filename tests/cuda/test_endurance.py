"""Training and generating for long on a GPU: memory stays flat, and losses are those of the CPU."""

from __future__ import annotations

from typing import Any

import pytest

import votive as vt
from tests import tiny_sizes
from votive.models import GPT2Config, GPT2LMHeadModel, Qwen3Config, Qwen3ForCausalLM

from .device import EMULATED

real = pytest.mark.skipif(EMULATED, reason="takes too long on an emulated GPU")


def _gpt(device: str) -> tuple[Any, Any]:
    vt.manual_seed(0)
    config = GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=64, n_positions=32)
    model = GPT2LMHeadModel(config).to(device).eval()
    return model, vt.optim.AdamW(model.parameters(), lr=1e-3)


def _losses(device: str, steps: int) -> list[float]:
    model, optimizer = _gpt(device)
    vt.manual_seed(1)
    ids = vt.randint(0, 64, (2, 17)).to(device)
    out = []
    for _ in range(steps):
        loss = model(ids, labels=ids).loss
        loss.backward()
        vt.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        out.append(loss.item())
    return out


def test_losses_of_training_agree_with_the_cpu() -> None:
    steps = 2 if EMULATED else 50
    there, here = _losses("cuda", steps), _losses("cpu", steps)
    assert there == pytest.approx(here, rel=1e-4)
    assert there[-1] < there[0]


@real
def test_memory_stays_flat_over_two_thousand_training_steps() -> None:
    model, optimizer = _gpt("cuda")
    ids = vt.randint(0, 64, (2, 17), device="cuda")
    marks = []
    for step in range(2000):
        model(ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step in (50, 1999):
            vt.cuda.synchronize()
            marks.append((vt.cuda.memory_allocated(), vt.cuda.memory_reserved()))
    assert marks[0] == marks[1]


@real
def test_memory_stays_flat_over_a_thousand_tokens_from_a_graph() -> None:
    vt.manual_seed(0)
    config = Qwen3Config(
        **tiny_sizes.transformer(64, 96, layers=2, heads=4, vocab=128, kv_heads=2),
        head_dim=16,
        max_position_embeddings=2048,
    )
    model = Qwen3ForCausalLM(config).to("cuda").eval()
    ids = vt.randint(0, 128, (1, 8), device="cuda")
    how: dict[str, Any] = {"do_sample": False, "cache_implementation": "static"}

    def generate(tokens: int) -> Any:
        return model.generate(ids, max_new_tokens=tokens, min_new_tokens=tokens, **how)

    long = generate(1100)
    assert long.shape == (1, 1108)
    plain = model.generate(ids, max_new_tokens=40, min_new_tokens=40, do_sample=False)
    assert vt.equal(long[:, :48].cpu(), plain.cpu())  # the graph says what single launches say
    vt.cuda.synchronize()
    before = vt.cuda.memory_allocated()
    generate(1100)
    vt.cuda.synchronize()
    assert vt.cuda.memory_allocated() <= before


@real
def test_a_graph_draws_new_numbers_at_each_replay_as_single_launches_would() -> None:
    def draw() -> Any:
        return vt.rand(5, device="cuda") + vt.nn.functional.dropout(vt.ones(5, device="cuda"), 0.5)

    vt.manual_seed(3)
    plain = [draw().cpu() for _ in range(4)]
    vt.manual_seed(3)
    graphed = vt.cuda.make_graphed(draw, warmup=1)  # which draws once
    for wanted in plain[1:]:
        assert vt.equal(graphed().cpu(), wanted)


@real
def test_choices_and_counts_in_a_graph_are_those_of_single_launches() -> None:
    from votive.ops.registry import F

    weights, rates = vt.rand(3, 50, device="cuda"), vt.rand(20, device="cuda") * 30

    def draw() -> Any:
        parts = [
            vt.multinomial(weights, 4).flatten(),
            vt.multinomial(weights, 2, replacement=True)[0],
            vt.randperm(9, device="cuda"),
            vt.poisson(rates),
            F._standard_gamma(rates),
            vt.bernoulli(weights[0]),
            vt.empty(5, device="cuda").random_(0, 99),
        ]
        return vt.cat([p.to(vt.float64) for p in parts])

    vt.manual_seed(5)
    plain = [draw().cpu() for _ in range(4)]
    vt.manual_seed(5)
    graphed = vt.cuda.make_graphed(draw, warmup=1)
    for wanted in plain[1:]:
        assert vt.equal(graphed().cpu(), wanted)
