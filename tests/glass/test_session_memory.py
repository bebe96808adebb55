"""What a session holds in memory, and that it notices when that no longer holds."""

from __future__ import annotations

import gc
import weakref

import pytest

import votive
from votive import glass
from votive.glass.kv_store import PrefixStore

from ..generation.tiny import model as tiny_model
from .session_models import PROMPT, start, text_model


def test_memory_is_bounded_and_what_was_dropped_is_computed_again() -> None:
    free, tight = start(), start(memory_limit=3000)
    for session in (free, tight):
        for _ in range(6):
            session.branch(0)
            session.step(5)
    assert [n.tokens for n in free.nodes] == [n.tokens for n in tight.nodes]
    assert free.memory()["kv"] > 3000 >= tight.memory()["kv"]
    assert tight.memory()["evicted"] > 0
    assert tight.memory()["runs"] > free.memory()["runs"]
    assert all(votive.equal(a.logits, b.logits) for a, b in zip(free.nodes, tight.nodes))


def test_branches_share_the_keys_and_values_of_their_beginning() -> None:
    session = start()
    session.step(10)
    one = session.memory()["kv"]
    session.jump(5)
    session.choose(1)
    session.logits()
    # One more position, with keys and values of 2 layers of 32 features.
    assert session.memory()["kv"] - one == 2 * 2 * 32 * 4


def test_a_session_that_is_dropped_frees_its_memory() -> None:
    gc.collect()
    wide = tiny_model("llama", hidden_size=256)
    before = votive.cpu.memory_allocated()
    gc.disable()
    try:
        session = glass.Session(wide, None, list(range(1, 41)), do_sample=True)
        for _ in range(3):
            session.branch(0)
            session.step(8)
        node, runner = session.node, weakref.ref(session.runner)
        assert votive.cpu.memory_allocated() > before + 100_000
        dropped = weakref.ref(session)
        del session
        # No cycle holds it: neither needs the garbage collector.
        assert dropped() is None
        assert runner() is None
        with pytest.raises(RuntimeError, match="the session of this node is gone"):
            node.logits  # noqa: B018
        del node
        assert votive.cpu.memory_allocated() <= before + 4096
    finally:
        gc.enable()


def test_weights_that_change_are_noticed() -> None:
    other = text_model()
    session = glass.Session(other, None, PROMPT)
    before = session.node.digest
    session.step()
    with votive.no_grad():
        other.lm_head.weight.mul_(1.5)
    with pytest.raises(RuntimeError, match="parameters have changed"):
        session.step()
    session.forget()
    assert session.nodes[0].digest != before


def test_changes_from_outside_are_noticed_and_looking_is_allowed() -> None:
    session = start()
    session.step()
    with glass.patch(session.model, {"layers.0.mlp": lambda x: x * 0}):
        with pytest.raises(RuntimeError, match="hooks have changed"):
            session.step()
    with pytest.raises(RuntimeError, match="hooks have changed"), glass.ablate(session.model, "layers.0.mlp/linear"):
        session.step()
    handle = session.model.lm_head.register_forward_hook(lambda m, args, out: out * 2)
    with pytest.raises(RuntimeError, match="hooks have changed"):
        session.step()
    handle.remove()
    with glass.capture(session.model, ["layers.*.mlp", "/linear"], policy="stats") as seen:
        session.step(2)
        session.logits()
    assert len(seen) > 10
    assert votive.equal(session.logits(), session.fresh_logits())
    with votive.autocast("cpu", dtype=votive.bfloat16):
        with pytest.raises(RuntimeError, match="autocast types have changed"):
            session.step()
    with votive.inference_mode():
        session.step()
    session.step()
    assert votive.equal(session.logits(), session.fresh_logits())
    session.model.train()
    with pytest.raises(RuntimeError, match="training mode"):
        session.step()
    session.model.eval()


def test_logits_are_kept_of_few_prefixes_only() -> None:
    session = start()
    session.step(40)
    held = [n for n in session.nodes if n._prefix is not None and n._prefix.logits is not None]
    assert 0 < len(held) <= 16
    assert isinstance(session.runner.store, PrefixStore)
    assert votive.equal(session.nodes[1].logits, session.fresh_logits(1))
