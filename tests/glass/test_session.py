"""Sessions: going to and fro in a tree of texts."""

from __future__ import annotations

import gc
import math
import os
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

import votive
from votive import glass
from votive.glass.kv_store import PrefixStore
from votive.serialization import FileFormatError

from ..generation.tiny import model as tiny_model
from .session_models import fresh, model, text_model, tokenizer

PROMPT = [5, 17, 3, 42]


def start(**given: Any) -> glass.Session:
    return glass.Session(model("llama"), None, PROMPT, **{"do_sample": True, "seed": 1, **given})


def test_greedy_steps_write_what_generate_writes() -> None:
    session = glass.Session(model("llama"), None, PROMPT)
    session.step(8)
    want = model("llama").generate(votive.tensor([PROMPT]), max_new_tokens=8)
    assert session.tokens == want[0].tolist()


def test_undo_and_redo_go_along_the_moves() -> None:
    session = start()
    nodes = [session.node, *(session.step() for _ in range(4))]
    assert session.undo(3) is nodes[1]
    assert session.redo() is nodes[2]
    assert session.redo(2) is nodes[4]
    with pytest.raises(IndexError, match="there are 0 moves to make again"):
        session.redo()
    with pytest.raises(IndexError, match="there are 4 moves to take back, not 5"):
        session.undo(5)


def test_drawing_again_at_a_node_gives_the_same_token_and_no_new_node() -> None:
    session = start()
    last = session.step(5)
    session.undo(3)
    assert session.step(3) is last
    session.jump(0)
    assert session.step(5) is last
    assert len(session) == 6


def test_a_draw_depends_on_the_seed_and_the_branch() -> None:
    texts = set()
    for seed in range(6):
        session = start(seed=seed)
        session.step(8)
        texts.add(tuple(session.tokens))
    assert len(texts) > 1
    session = start()
    first = session.step(8)
    seen = {tuple(session.tokens)}
    for number in range(1, 6):
        assert session.branch(0) == number
        session.step(8)
        seen.add(tuple(session.tokens))
    assert len(seen) > 1
    # A jump to the first branch goes on with its own draws.
    session.jump(first.path()[3])
    assert session.step(5) is first


def test_draws_follow_the_probabilities() -> None:
    session = start()
    want = session.logits().softmax(-1)
    counts = votive.zeros_like(want)
    for _ in range(600):
        session.jump(0)
        session.branch()
        counts[session.step().token] += 1
    best = int(want.argmax())
    spread = math.sqrt(float(want[best]) * (1 - float(want[best])) / 600)
    assert abs(float(counts[best]) / 600 - float(want[best])) < 4 * spread


def test_choosing_by_token_rank_and_text() -> None:
    session = glass.Session(text_model(), tokenizer(), "a cat")
    by_rank = session.choose(rank=2)
    assert by_rank.token == session.path()[-2].top[2][0]
    assert by_rank.how == "chosen"
    assert by_rank.logprob == pytest.approx(math.log(by_rank.parent.top[2][1]))
    session.undo()
    session.choose(" and a dog")
    assert session.text == "a cat and a dog"
    session.choose(7)
    assert session.tokens[-1] == 7
    with pytest.raises(TypeError, match="one of token, rank and text"):
        session.choose(3, rank=1)
    with pytest.raises(IndexError, match="no token 258; the model has 258"):
        session.choose(258)
    with pytest.raises(IndexError, match=r"rank=-1 is outside 0\.\.257"):
        session.choose(rank=-1)


def test_auto_ends_at_its_limit_at_an_end_token_at_a_string_and_where_told() -> None:
    words = [tokenizer().decode([i]) for i in range(258)]
    odd = [i for i, w in enumerate(words) if not (w.isascii() and w.isalpha())]
    session = glass.Session(text_model(), tokenizer(), "a cat", do_sample=True, seed=5, suppress_tokens=odd)
    assert len(list(session.auto(6))) == 6
    tokens = session.tokens[-6:]
    session.jump(0)
    session.set_sampler(eos_token_id=tokens[2])
    assert [n.token for n in session.auto(6)] == tokens[: tokens.index(tokens[2]) + 1]
    session.set_sampler(eos_token_id=999)
    session.jump(0)
    piece = tokenizer().decode(tokens[:2])
    assert len(list(session.auto(6, stop=[piece]))) == 2
    session.jump(0)
    assert len(list(session.auto(6, stop=lambda s: s.node.stop >= len(s.nodes[0].tokens) + 3))) == 3


def test_auto_without_a_limit_ends_where_the_models_positions_end() -> None:
    short = tiny_model("llama", max_position_embeddings=12)
    session = glass.Session(short, None, PROMPT)
    assert len(list(session.auto())) == 12 - len(PROMPT)
    session.jump(0)
    session.set_sampler(max_new_tokens=3)
    assert len(list(session.auto())) == 3
    with pytest.raises(ValueError, match="max_new_tokens must be positive"):
        session.auto(0)


def test_auto_can_be_left_and_cancelled() -> None:
    session = start()
    for count, _ in enumerate(session.auto(50), 1):
        if count == 3:
            break
    assert session.node.stop == len(PROMPT) + 3
    for count, _ in enumerate(session.auto(50), 1):
        if count == 2:
            session.cancel()
    assert session.node.stop == len(PROMPT) + 5


def test_settings_hold_from_a_node_on_and_are_taken_back_with_it() -> None:
    session = start()
    session.step(2)
    session.set_sampler(temperature=0.25, top_k=3)
    node = session.step()
    assert node.settings.temperature == 0.25
    assert node.parent.settings.temperature == 1.0
    session.undo(2)
    assert session.settings.temperature == 1.0
    session.jump(node)
    assert session.settings.top_k == 3
    assert len([p for _, p in session.top(10, processed=True) if p > 0]) == 3
    assert len([p for _, p in session.top(10) if p > 0]) == 10


def test_settings_that_mean_nothing_here_are_refused() -> None:
    with pytest.raises(ValueError, match="'num_beams' does not apply here"):
        start(num_beams=2)
    with pytest.raises(ValueError, match="there is no setting 'temprature'"):
        start(temprature=2)
    with pytest.raises(ValueError, match="'seed' does not apply here; give seed= to the session"):
        start().set_sampler(seed=3)
    with pytest.warns(UserWarning, match="top_k has no effect without do_sample"):
        glass.Session(model("llama"), None, PROMPT).set_sampler(top_k=4)


def test_a_prompt_keeps_the_blocks_it_shares_with_earlier_ones() -> None:
    long = list(range(1, 40))
    session = glass.Session(model("llama"), None, long, block=8)
    session.step()
    runs = session.memory()["runs"]
    session.set_prompt([*long[:30], 7, 8, 9])
    session.logits()
    # Three whole blocks are there: one block of 8 and one token remain to be run.
    assert session.memory()["runs"] == runs + 2
    assert votive.equal(session.logits(), session.fresh_logits())


def test_an_edit_with_positions_keeps_what_comes_before_them() -> None:
    session = start(block=2)
    session.step(6)
    session.logits()
    runs = session.memory()["runs"]
    session.set_edits([glass.Edit("layers.*.mlp", "zero", positions=[7])])
    assert session.memory()["runs"] == runs + 3  # positions 7, 8 and 9
    session.set_edits([glass.Edit("layers.*.mlp", "zero", positions=[200])])
    assert session.memory()["runs"] == runs + 3
    session.set_edits([glass.Edit("layers.*.mlp", "zero")])
    assert session.memory()["runs"] == runs + 4  # from here on


def test_edits_change_the_node_where_they_are_set_and_what_follows_only() -> None:
    session = start()
    plain = session.step(3)
    before = plain.digest
    edited = session.set_edits([glass.Edit("layers.1.mlp", "zero")])
    assert edited is not plain
    assert edited.token == plain.token
    assert edited.parent is plain.parent
    assert edited.digest != before == plain.digest
    assert edited.variant_of == plain.id
    child = session.step()
    assert [e.at for e in child.edits] == ["layers.1.mlp"]
    session.set_edits([])
    assert session.edits == []
    assert session.node.plan[0].until == child.start
    whole = session.set_edits([], from_start=True)
    assert whole.plan == ()


def test_an_edit_is_a_copy_of_what_was_given() -> None:
    session = start()
    value = votive.ones(32)
    session.set_edits([glass.Edit("layers.1.mlp", "add", value)])
    first = session.node.digest
    value.fill_(100.0)
    session.forget()
    assert session.node.digest == first


def test_edits_that_cannot_be_made_are_refused_and_leave_nothing() -> None:
    session = start()
    session.step()
    count = len(session)
    with pytest.raises(glass.NoMatch):
        session.set_edits([glass.Edit("layers.9.mlp", "zero")])
    with pytest.raises(glass.NoMatch):
        session.set_edits([glass.Edit("layers.0.mlp/softmax", "zero")])
    with pytest.raises(ValueError, match="count from an end that moves"):
        session.set_edits([glass.Edit("layers.0.mlp", "zero", positions=[-1])])
    with pytest.raises(ValueError, match="counts runs"):
        session.set_edits([glass.Edit("layers.0.mlp", "zero", runs=[1])])
    with pytest.raises(RuntimeError, match="do not broadcast"):
        session.set_edits([glass.Edit("layers.0.mlp", "add", votive.ones(7))])
    assert len(session) == count
    assert session.edits == []
    assert session.nodes[0].children_ids == [1]
    assert votive.equal(session.logits(), session.fresh_logits())


def test_code_as_an_edit_works_and_cannot_be_saved(tmp_path: Path) -> None:
    session = start(edits=[glass.Edit("layers.0.mlp", "call", lambda x: x * 0)])
    other = start(edits=[glass.Edit("layers.0.mlp", "zero")])
    assert votive.equal(session.logits(), other.logits())
    with pytest.raises(TypeError, match="holds code, which is not saved"):
        session.save(tmp_path / "x.votive")
    with pytest.raises(TypeError, match="holds code"):
        session.to_script("model = tokenizer = None")


def test_two_branches_are_compared() -> None:
    session = glass.Session(text_model(), tokenizer(), "a cat")
    a = session.choose(" and")
    session.jump(0)
    b = session.choose(" dog")
    diff = session.diff(a, b)
    assert diff.fork is session.nodes[0]
    assert session.decode(diff.common) == diff.common_text
    assert diff.common_text + diff.a_text == "a cat and"
    at = next(n for n in a.path() if n.stop == len(diff.common))
    p = at.logits.double().softmax(-1)
    assert diff.a_in_a == float(p[diff.a_tokens[0]])
    assert diff.b_in_a == float(p[diff.b_tokens[0]])
    logs = [n.logits.double().log_softmax(-1) for n in (a, b)]
    kl = float((logs[0].exp() * (logs[0] - logs[1])).sum())
    assert diff.kl_ab == pytest.approx(kl)
    assert diff.kl_ab > 0
    assert session.diff(a, a).kl_ab == 0
    assert "KL(a|b)" in str(diff)


def test_the_outlook_is_that_of_the_logits() -> None:
    session = start(top=4)
    node = session.step()
    p = node.logits.double().softmax(-1)
    assert [t for t, _ in node.top] == p.argsort(descending=True)[:4].tolist()
    assert node.entropy == pytest.approx(float(-(p * p.log()).sum()))
    before = session.nodes[0].logits.double().log_softmax(-1)
    assert node.logprob == float(before[node.token])
    assert [p for _, p in session.top(6)][:4] == [p for _, p in node.top]


def test_hidden_states_are_those_under_the_edits() -> None:
    session = start()
    session.step(2)
    session.set_edits([glass.Edit("layers.0.mlp", "zero")])
    seen = session.hidden("layers.*.mlp")
    assert seen["model.layers.0.mlp"].shape == (1, 1, 32)
    assert float(seen["model.layers.0.mlp"].abs().max()) == 0
    whole = session.hidden("layers.0.mlp", whole=True)
    sizes = [v.shape[1] for v in whole.all("model.layers.0.mlp")]
    assert sizes == [len(PROMPT), 1, 1]
    assert votive.equal(session.logits(), session.fresh_logits())


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


def test_a_prompt_may_be_fed_whole() -> None:
    session = start(block=None)
    session.step(2)
    assert session.memory()["runs"] == 2
    assert votive.equal(session.logits(), fresh(session.node, len(PROMPT)))


def test_models_that_cannot_be_exact_are_refused() -> None:
    with pytest.raises(ValueError, match=r"call model\.eval\(\)"):
        glass.Session(text_model().train(), None, PROMPT)
    with pytest.raises(TypeError, match="expected a module"):
        glass.Session(object(), None, PROMPT)
    with pytest.raises(ValueError, match="the prompt is empty"):
        glass.Session(model("llama"), None, [])
    with pytest.raises(ValueError, match="a text needs a tokenizer"):
        glass.Session(model("llama"), None, "a cat")


def test_an_error_inside_the_model_leaves_the_session_whole() -> None:
    session = start()
    session.step(2)
    session.set_prompt([1, 2, 99999])
    with pytest.raises(IndexError):
        session.logits()
    session.undo()
    assert votive.equal(session.logits(), session.fresh_logits())


def test_another_model_or_tokenizer_is_refused(tmp_path: Path) -> None:
    session = glass.Session(text_model(), tokenizer(), "a cat")
    session.step(2)
    path = tmp_path / "one.votive"
    session.save(path)
    other = text_model()
    with votive.no_grad():
        other.lm_head.weight.mul_(1.5)
    with pytest.raises(glass.SessionMismatch, match="was made with another model: a LlamaFor"):
        glass.Session.load(path, other, tokenizer())
    forced = glass.Session.load(path, other, tokenizer(), force=True)
    with pytest.raises(glass.SessionMismatch, match="node 0: its logits differ"):
        forced.replay()
    assert not forced.replay(strict=False).exact
    words = votive.text.train_bpe(["other words here here"], vocab_size=258, progress=False)
    with pytest.raises(glass.SessionMismatch, match="another tokenizer"):
        glass.Session.load(path, text_model(), words)
    assert glass.Session.load(path, text_model(), tokenizer()).text == session.text


def test_a_file_that_is_no_session_is_refused(tmp_path: Path) -> None:
    votive.save({"weight": votive.ones(2)}, tmp_path / "weights.votive")
    with pytest.raises(FileFormatError, match="holds no session"):
        glass.Session.load(tmp_path / "weights.votive", model("llama"))
    session = start()
    session.save(tmp_path / "one.votive")
    result = votive.load(tmp_path / "one.votive")
    del result["nodes"]
    votive.save(result, tmp_path / "two.votive")
    with pytest.raises(FileFormatError, match="is damaged"):
        glass.Session.load(tmp_path / "two.votive", model("llama"))


def test_the_hash_of_a_model_is_that_of_its_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    assert glass.model_hash(text_model()) == glass.model_hash(text_model())
    monkeypatch.setattr("votive.glass.session_file._ALL_BYTES", 1000)
    first, second = text_model(), text_model()
    assert glass.model_hash(first).startswith("sampled:")
    with votive.no_grad():
        second.lm_head.weight[0, 0] += 1
    assert glass.model_hash(first) != glass.model_hash(second)


SETUP = """
from tests.glass.session_models import text_model, tokenizer as make_tokenizer

model, tokenizer = text_model(), make_tokenizer()
"""


def test_the_script_of_a_session_makes_it_again(tmp_path: Path) -> None:
    session = glass.Session(
        text_model(),
        tokenizer(),
        "a cat",
        do_sample=True,
        seed=9,
        temperature=0.9,
        edits=[glass.Edit("layers.0.mlp", "scale", 0.5, positions=[1])],
    )
    session.step(3)
    session.undo()
    session.choose(" dog")
    session.branch()
    session.set_sampler(top_p=0.9)
    list(session.auto(4))
    session.set_edits([*session.edits, glass.Edit("layers.1.mlp", "add", votive.rand(32))])
    session.set_edits([*session.edits, glass.Edit("layers.1", "add", votive.randn(64)[:32] / 3)])
    session.step(2)
    session.jump(2)
    session.set_prompt("a dog")
    session.step(2)
    session.jump(len(session) - 4)
    program = tmp_path / "again.py"
    program.write_text(session.to_script(SETUP) + f"session.save({str(tmp_path / 'again.votive')!r})\n")
    ran = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": "."},
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == session.text.strip()
    again = glass.Session.load(tmp_path / "again.votive", text_model(), tokenizer())
    assert [n.key() for n in again.nodes] == [n.key() for n in session.nodes]
    seen = [(a, b) for a, b in zip(again.nodes, session.nodes, strict=True) if a._outlook]
    assert len(seen) > 5
    assert all(a.digest == b.digest for a, b in seen)


def test_the_script_of_a_loaded_model_loads_it(tmp_path: Path) -> None:
    text_model().save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    loaded = votive.models.AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    session = glass.Session(loaded, tokenizer(), "a dog", do_sample=True)
    session.step(3)
    (tmp_path / "again.py").write_text(session.to_script())
    ran = subprocess.run(
        [sys.executable, str(tmp_path / "again.py")],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": "."},
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == session.text.strip()


def test_a_script_needs_to_know_where_the_model_comes_from() -> None:
    with pytest.raises(ValueError, match="give setup="):
        start().to_script()


def test_logits_are_kept_of_few_prefixes_only() -> None:
    session = start()
    session.step(40)
    held = [n for n in session.nodes if n._prefix is not None and n._prefix.logits is not None]
    assert 0 < len(held) <= 16
    assert isinstance(session.runner.store, PrefixStore)
    assert votive.equal(session.nodes[1].logits, session.fresh_logits(1))


def test_means_come_from_a_data_set_since_a_session_writes_one_text() -> None:
    session = start()
    session.step(3)
    for do in ("mean", "resample"):
        with pytest.raises(ValueError, match="a session writes one text"):
            session.set_edits([glass.Edit("layers.0.mlp", do)])
    data = [votive.tensor([[1, 2, 3, 4], [4, 3, 2, 1]]), votive.tensor([[5, 6]])]
    edits = glass.means(session.model, "layers.*.mlp", data, over="positions")
    before = session.logits()
    session.set_edits(edits, from_start=True)
    assert not votive.allclose(session.logits(), before)
    assert votive.equal(session.logits(), session.fresh_logits())
    with votive.no_grad(), glass.patch(session.model, edits):
        whole = session.model(votive.tensor([session.tokens])).logits[0, -1]
    assert votive.allclose(session.logits(), whole, atol=1e-5)
    short = glass.means(session.model, "layers.0.mlp", data)
    with pytest.raises(ValueError, match="is for 4 positions, but position"):
        session.set_edits(short, from_start=True)
