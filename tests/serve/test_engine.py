"""The engine writes what `generate` writes, whatever else it is writing, within bounds."""

from __future__ import annotations

import math
import random

import pytest

import votive
from tests.generation.tiny import KINDS, VOCABULARY
from votive.serve import Busy, Closing, ContextExceeded, Engine, TooLong
from votive.serve.served_model import ServedModel

from .engines import Answers, ask, run, served, settings, written


def prompts(count: int, longest: int = 40, seed: int = 0) -> list[list[int]]:
    """Prompts of different lengths."""
    draw = random.Random(seed)
    return [[draw.randrange(VOCABULARY) for _ in range(draw.randint(1, longest))] for _ in range(count)]


def mixed(one: Engine, asked: list[list[int]], **options: object) -> list[Answers]:
    """Ask for several, some of them while others are written."""
    found: list[Answers] = []
    for i, prompt in enumerate(asked):
        found.append(ask(one, prompt, new=4 + 3 * i, **options))
        for _ in range(i % 3):
            one.step()
    run(one)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_texts_that_join_and_leave_are_those_of_generate(kind: str) -> None:
    one = Engine(served(kind), chunk=16)
    asked = prompts(6)
    for i, (prompt, answer) in enumerate(zip(asked, mixed(one, asked), strict=True)):
        assert answer.tokens() == written(one, prompt, 4 + 3 * i)
        assert answer.reasons() == ["length"]
        assert answer.done.usage.prompt == len(prompt)
        assert answer.done.usage.completion == 4 + 3 * i


@pytest.mark.parametrize("dtype", [votive.float32, votive.bfloat16])
def test_deterministic_logits_are_those_of_generate_bit_by_bit(dtype: votive.dtype) -> None:
    made = served("grouped")
    one = Engine(ServedModel("m", made.model.to(dtype), None), chunk=16, deterministic=True)
    asked = [[7, 9, 4] * 15, *prompts(3), [7, 9, 4] * 15]
    for i, (prompt, answer) in enumerate(zip(asked, mixed(one, asked, logprobs=0), strict=True)):
        out = votive.generation.generate(
            one.served.model,
            votive.tensor([prompt]),
            max_new_tokens=4 + 3 * i,
            prefill_chunk_size=16,
            return_dict_in_generate=True,
            output_logits=True,
        )
        tokens = out.sequences[0].tolist()[len(prompt) :]
        assert answer.tokens() == tokens
        expected = [float(s[0].float().log_softmax(-1)[t]) for s, t in zip(out.logits, tokens, strict=True)]
        assert answer.logprobs() == expected
    assert one.counters.reused_tokens == 32  # whole chunks only


def test_draws_are_those_of_generate_with_the_same_seed() -> None:
    one = Engine(served(initializer_range=0.1))
    options = {"do_sample": True, "seed": 5, "temperature": 0.9, "top_p": 0.9, "repetition_penalty": 1.2}
    answers = [ask(one, p, new=9, n=2, **options) for p in prompts(3)]
    run(one)
    for prompt, answer in zip(prompts(3), answers, strict=True):
        out = votive.generation.generate(
            one.served.model, votive.tensor([prompt]), max_new_tokens=9, num_return_sequences=2, **options
        )
        assert [answer.tokens(0), answer.tokens(1)] == [r[len(prompt) :] for r in out.tolist()]


def test_without_a_seed_texts_differ() -> None:
    one = Engine(served(initializer_range=0.05))
    votive.manual_seed(0)
    first = ask(one, [1, 2], new=16, do_sample=True)
    votive.manual_seed(0)
    second = ask(one, [1, 2], new=16, do_sample=True)
    run(one)
    assert first.tokens() != second.tokens()


def test_prompts_with_the_same_beginning_are_read_once_and_say_the_same() -> None:
    one, plain = Engine(served(), block=8), Engine(served(), share=False)
    begin = prompts(1, 1)[0] * 50
    asked = [[*begin, 3, 4], [*begin, 5], begin]
    answers, expected = [], []
    for prompt in asked:
        answers.append(ask(one, prompt))
        run(one)
        expected.append(ask(plain, prompt))
        run(plain)
    assert [a.tokens() for a in answers] == [a.tokens() for a in expected]
    assert [a.done.usage.reused for a in answers] == [0, 48, 48]
    assert all(a.done.usage.reused == 0 for a in expected)


def test_the_next_turn_of_a_conversation_begins_with_what_was_written() -> None:
    one = Engine(served(), block=8)
    first = ask(one, [1, 2, 3, 4, 5, 6], new=20)
    run(one)
    follow = [1, 2, 3, 4, 5, 6, *first.tokens(), 9]
    second = ask(one, follow)
    run(one)
    assert second.done.usage.reused == 24
    assert second.tokens() == written(one, follow)


def test_a_request_may_ask_for_no_sharing() -> None:
    one = Engine(served(), block=8)
    for share in (True, False, True):
        last = ask(one, [5] * 30, share=share)
        run(one)
        assert (last.done.usage.reused > 0) == (share and one.counters.requests > 1)


def test_a_long_prompt_does_not_hold_up_what_is_written() -> None:
    one = Engine(served(), chunk=8)
    first = ask(one, [1, 2], new=30)
    one.step()
    ask(one, [3] * 80, new=2)
    before = len(first.tokens())
    for _ in range(5):
        one.step()
    assert len(first.tokens()) == before + 5  # a token at each step, while the prompt is being read
    run(one)


def test_memory_is_never_more_than_was_given() -> None:
    made = served()
    each = made.position_bytes()
    one = Engine(made, memory=each * 1600, block=16, max_texts=8)
    asked = prompts(24, 60)
    answers = [ask(one, p, new=10 + i) for i, p in enumerate(asked)]
    most = 0
    while one.step():
        rows = one._batch.cache.allocated()
        reading = sum(t.cache.nbytes() for t in one._reading if t.cache is not None) // each
        kept = one.store.statistics().kept * 16
        most = max(most, rows + reading + kept)
        assert rows + reading + kept <= 1600
        assert len(one._batch.texts) <= 8
    assert most > 800
    for i, (prompt, answer) in enumerate(zip(asked, answers, strict=True)):
        assert answer.tokens() == written(one, prompt, 10 + i)
    assert one.store.statistics().held == 0
    assert one.store.statistics().evicted > 0
    assert one._batch.cache.allocated() == 0


def test_what_never_fits_is_refused_at_once() -> None:
    made = served()
    one = Engine(made, memory=made.position_bytes() * 300)
    with pytest.raises(TooLong, match="this server has it for 288"):
        ask(one, [1] * 100, new=100)
    with pytest.raises(ContextExceeded, match="context is 512"):
        ask(one, [1] * 500, new=100)
    with pytest.raises(ValueError, match="outside the vocabulary of 61"):
        ask(one, [1, 61])
    with pytest.raises(ValueError, match="at least one token"):
        ask(one, [])
    with pytest.raises(ValueError, match="hold no block"):
        Engine(made, memory=100)
    assert not one.busy


def test_a_full_queue_says_so_and_takes_more_later() -> None:
    one = Engine(served(), max_texts=2, max_waiting=3)
    for _ in range(2):
        ask(one, [1], new=3)
    one.step()
    for _ in range(3):
        ask(one, [2], new=3)
    with pytest.raises(Busy) as refused:
        ask(one, [3], new=3)
    assert refused.value.retry_after >= 1
    assert one.counters.refused == 1
    run(one)
    ask(one, [3], new=3)
    run(one)
    assert one.counters.finished == 6


def test_what_nobody_wants_any_more_is_dropped_wherever_it_is() -> None:
    one = Engine(served(), chunk=4, max_texts=3)
    writing, reading = ask(one, [1, 2, 3], new=50), ask(one, [4] * 60, new=50, n=2)
    waiting = ask(one, [5], new=50)
    for _ in range(3):
        one.step()
    kept = ask(one, [6, 7], new=6)
    for answer in (writing, reading, waiting):
        answer.ticket.cancel()
    run(one)
    assert writing.reasons() == ["cancelled"]
    assert reading.reasons() == ["cancelled", "cancelled"]
    assert 0 < len(writing.tokens()) < 50
    assert kept.tokens() == written(one, [6, 7], 6)
    assert all(a.ticket.over for a in (writing, reading, waiting, kept))
    assert one.counters.cancelled == 3
    assert one.store.statistics().held == 0


def test_a_text_of_which_nothing_can_be_chosen_fails_alone() -> None:
    one = Engine(served())
    good = ask(one, [1, 2], do_sample=True, seed=1)
    bad = ask(one, [1, 2], do_sample=True, seed=1, sequence_bias={(i,): -math.inf for i in range(VOCABULARY)})
    run(one)
    assert bad.error is not None
    assert "no token can be drawn" in str(bad.error)
    assert good.tokens() == written(one, [1, 2], do_sample=True, seed=1)


def test_an_error_of_a_step_is_told_and_the_engine_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Engine(served())
    hit = ask(one, [1, 2], new=9)
    one.step()

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    with monkeypatch.context() as patch:
        patch.setattr("votive.serve.engine.step_rows", broken)
        one.step()
    assert str(hit.error) == "broken"
    after = ask(one, [1, 2], new=9)
    run(one)
    assert after.tokens() == written(one, [1, 2], 9)


def test_an_end_of_text_ends_one_copy_and_the_others_go_on() -> None:
    one = Engine(served(initializer_range=0.05))
    config = {"do_sample": True, "seed": 3, "eos_token_id": list(range(20))}
    answer = ask(one, [1, 2, 3], new=40, n=6, **config)
    run(one)
    out = votive.generation.generate(
        one.served.model,
        votive.tensor([[1, 2, 3]]),
        max_new_tokens=40,
        num_return_sequences=6,
        pad_token_id=0,
        **config,
    ).tolist()
    for i in range(6):
        tokens = answer.tokens(i)
        assert tokens == out[i][3 : 3 + len(tokens)]
        assert answer.reasons()[i] == ("eos" if tokens[-1] < 20 else "length")
    assert len({len(answer.tokens(i)) for i in range(6)}) > 2


def test_the_likeliest_tokens_come_with_their_log_probabilities() -> None:
    one = Engine(served())
    answer = ask(one, [1, 2, 3], new=3, logprobs=4)
    run(one)
    logits = one.served.model(votive.tensor([[1, 2, 3]])).logits[0, -1].log_softmax(-1)
    chosen = answer.events[0].tokens[0]
    values, indices = votive.topk(logits, 4)
    assert [t for t, _ in chosen.top] == indices.tolist()
    assert [p for _, p in chosen.top] == pytest.approx(values.tolist(), abs=1e-5)
    assert chosen.logprob == chosen.top[0][1]


def test_closing_ends_what_is_under_way_and_refuses_what_comes() -> None:
    one = Engine(served(), max_texts=1)
    running, waiting = ask(one, [1], new=50), ask(one, [2], new=50)
    one.step()
    one.close()
    assert isinstance(running.error, Closing)
    assert isinstance(waiting.error, Closing)
    with pytest.raises(Closing):
        ask(one, [3])
    assert not one.busy


def test_a_cache_in_few_bits_writes_what_generate_writes_with_it() -> None:
    made = ServedModel(
        "m", served(hidden_size=64, num_attention_heads=2, intermediate_size=64).model, None, cache_dtype="q8_0"
    )
    one = Engine(made, block=8)
    asked = [[3, 4, 5] * 9, [3, 4, 5] * 9, [8]]
    answers = [ask(one, p) for p in asked]
    run(one)
    for prompt, answer in zip(asked, answers, strict=True):
        assert answer.tokens() == written(one, prompt, cache_dtype="q8_0")


def test_settings_that_look_at_the_text_hold_for_their_own_text_only() -> None:
    one = Engine(served(initializer_range=0.1))
    plain = ask(one, [1, 2, 3], new=20)
    strict = ask(one, [1, 2, 3], new=20, no_repeat_ngram_size=1)
    counted = ask(one, [1, 2, 3], new=20, frequency_penalty=1.5, presence_penalty=0.5)
    run(one)
    assert len(set(strict.tokens())) == 20
    assert plain.tokens() == written(one, [1, 2, 3], 20)
    assert counted.tokens() == written(one, [1, 2, 3], 20, frequency_penalty=1.5, presence_penalty=0.5)
    assert settings(one).do_sample is False


def test_texts_whose_angles_depend_on_their_length_go_alone_and_are_those_of_generate() -> None:
    one = Engine(served(max_position_embeddings=64, rope_scaling={"rope_type": "dynamic", "factor": 4.0}))
    one.served.model.config.max_position_embeddings = 512
    assert not one.served.together
    assert "angles" in one.served.why_alone
    assert not one.share
    asked = [[5, 17, 3] * 19, [5, 17], [5, 17, 3] * 19]
    answers = [ask(one, p, new=20) for p in asked]  # the first outgrows what the angles were made for
    run(one)
    for prompt, answer in zip(asked, answers, strict=True):
        assert answer.tokens() == written(one, prompt, 20)


@pytest.mark.parametrize("family", ["Mamba", "Lfm2"])
def test_models_with_states_go_side_by_side_and_share_no_beginnings(family: str) -> None:
    votive.manual_seed(0)
    sizes = {
        "vocab_size": 61,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "eos_token_id": None,
        "initializer_range": 0.5,
    }
    if family == "Lfm2":
        sizes |= {"intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2}
        sizes |= {"layer_types": ["conv", "full_attention"]}
    config = getattr(votive.models, f"{family}Config")(**sizes)
    model = getattr(votive.models, f"{family}ForCausalLM")(config).eval()
    one = Engine(ServedModel(family, model, None), chunk=8)
    assert one.served.together, one.served.why_alone
    assert not one.share
    asked = prompts(5)
    for i, (prompt, answer) in enumerate(zip(asked, mixed(one, asked), strict=True)):
        assert answer.tokens() == written(one, prompt, 4 + 3 * i)
