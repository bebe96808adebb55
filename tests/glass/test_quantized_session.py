"""Sessions whose keys and values are kept in few bits: every way to a node gives the same logits, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from tests.nn.rounding import Rounding, rounded
from votive import glass, nn

from ..generation.test_quantized_caches import KINDS, PROMPT, model


def start(kind: str = "llama", **given: Any) -> Any:
    return glass.Session(model(kind), None, PROMPT, **{"cache_dtype": ("q8_0", "q4_0"), **given})


@pytest.mark.parametrize("kind", KINDS)
def test_every_way_to_a_node_gives_the_same_logits(kind: str) -> None:
    session = start(kind, block=4, do_sample=True, seed=2)
    session.step(5)
    session.jump(2)
    session.branch(1)
    session.step(3)
    session.jump(5)
    session.forget()
    for node in session.nodes:
        assert session.logits(node).tolist() == session.fresh_logits(node).tolist()
    assert session.replay().exact


def test_the_logits_are_those_of_rounded_rows() -> None:
    session = start(block=None)
    session.step(1)
    net, cache = model("llama"), Rounding(("q8_0", "q4_0"))
    with votive.no_grad():
        net(votive.tensor([PROMPT]), past_key_values=cache, use_cache=True)
        want = net(votive.tensor([[session.node.token]]), past_key_values=cache, use_cache=True).logits[0, -1]
    votive.testing.assert_close(session.logits(), want, rtol=1e-5, atol=1e-5)
    plain = glass.Session(model("llama"), None, PROMPT, block=None)
    assert session.logits(0).tolist() != plain.logits(0).tolist()


def test_memory_is_that_of_the_format() -> None:
    session, plain = start(), start(cache_dtype=None)
    session.logits(), plain.logits()
    positions = len(PROMPT)
    assert session.memory()["kv"] == 2 * 2 * positions * (34 + 18)
    assert plain.memory()["kv"] == 2 * 2 * positions * 256


def test_what_was_dropped_and_computed_again_is_rounded_to_the_same() -> None:
    free, tight = start(do_sample=True), start(do_sample=True, memory_limit=1500)
    for session in (free, tight):
        for _ in range(4):
            session.branch(0)
            session.step(5)
    assert tight.memory()["evicted"] > 0
    assert all(votive.equal(a.logits, b.logits) for a, b in zip(free.nodes, tight.nodes, strict=True))


def test_edits_of_keys_and_values_hold_for_every_way_to_a_node() -> None:
    net = model("llama")
    edits = [
        glass.Edit("layers.0.self_attn.k_proj", "scale", 0.5),
        glass.Edit("layers.1.self_attn/attention:in.1", "zero", positions=[2]),
        glass.Edit("layers.1.self_attn/attention", "scale", 2.0),
    ]
    plain = glass.Session(net, None, PROMPT, cache_dtype="q8_0")
    for edit in edits:
        session = glass.Session(net, None, PROMPT, edits=[edit], cache_dtype="q8_0")
        session.step(2)
        assert session.logits().tolist() == session.fresh_logits().tolist()
        assert session.logits(0).tolist() != plain.logits(0).tolist()


def test_captures_see_the_numbers_that_attention_sees() -> None:
    session = glass.Session(model("llama"), None, PROMPT, cache_dtype="q8_0", block=None)
    before = session.logits().tolist()
    sites = ["layers.1.self_attn.v_proj", "layers.1.self_attn/attention:in.2"]
    given, looked_at = (session.hidden(at)[at] for at in sites)
    rows = given.unflatten(-1, (-1, 32)).transpose(1, 2)
    assert looked_at.tolist() == rounded(rows, "q8_0").tolist()
    maps = glass.attention_maps(session.model, votive.tensor([PROMPT]), past_key_values=nn.DynamicCache(dtype="q8_0"))
    np.testing.assert_allclose(maps[1].weights().sum(-1).numpy(), 1, rtol=1e-5)
    assert session.fresh_logits().tolist() == before


def test_files_and_programs_keep_the_type(tmp_path: Path) -> None:
    session = start(do_sample=True, seed=5)
    session.step(4)
    session.save(tmp_path / "one.votive")
    again = glass.Session.load(tmp_path / "one.votive", model("llama"))
    assert again.runner.cache_dtype is not None
    assert again.logits().tolist() == session.logits().tolist()
    assert again.replay().exact
    setup = "from tests.generation.test_quantized_caches import model as make\nmodel, tokenizer = make('llama'), None"
    program = session.to_script(setup)
    assert "cache_dtype=('q8_0', 'q4_0')" in program
    exec(compile(program, "session", "exec"), {})


def test_the_type_belongs_to_the_session() -> None:
    with pytest.raises(ValueError, match="a cache keeps q8_0"):
        start(cache_dtype="q2_k")
    session = start()
    with pytest.raises(ValueError, match="give cache_dtype= to the session"):
        session.set_sampler(cache_dtype="q8_0")
