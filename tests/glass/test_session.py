"""Sessions: going to and fro in a tree of texts."""

from __future__ import annotations

import math

import pytest

import votive
from votive import glass

from ..generation.tiny import model as tiny_model
from .session_models import PROMPT, fresh, model, start, text_model, tokenizer


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


def test_texts_keep_their_form_wherever_a_session_goes() -> None:
    pytest.importorskip("llguidance", reason="forms are matched by llguidance")
    tok = votive.text.train_bpe(["yes no"], vocab_size=270, special_tokens=["<end>"], progress=False)
    tok.eos_token = "<end>"
    net = tiny_model("grouped", vocab_size=len(tok))
    ids = tok.encode("Really? ")
    session = glass.Session(net, tok, ids, choices=["yes", "nothing"], do_sample=True, seed=3)
    found = set()
    for _ in range(4):
        list(session.auto(12))
        text = tok.decode(session.tokens[len(ids) :], skip_special_tokens=True)
        assert text in ("yes", "nothing")
        found.add(text)
        session.branch(0)
    session.jump(0)
    session.choose("not")
    list(session.auto(12))
    assert tok.decode(session.tokens[len(ids) :], skip_special_tokens=True) == "nothing"


def test_settings_that_look_at_more_than_the_last_scores_say_so() -> None:
    for settings, message in (
        ({"penalty_alpha": 0.6}, "from the last logits alone"),
        ({"guidance_scale": 1.5}, "on its own text alone"),
        ({"prompt_lookup_num_tokens": 2}, "one text at a time"),
        ({"watermarking_config": {"bias": 2.0}}, ""),
    ):
        if not message:
            session = glass.Session(model("llama"), None, PROMPT, **settings)
            assert session.step(4) is session.node
            continue
        with pytest.raises(ValueError, match=message):
            glass.Session(model("llama"), None, PROMPT, **settings)
