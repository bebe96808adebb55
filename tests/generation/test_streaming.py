"""Text while it is written: whole characters, no part of a stop string, and it can be ended."""

from __future__ import annotations

import functools
import threading
from typing import Any

import pytest

import votive
from votive.generation import PrefixCache, TextIteratorStreamer, TextStreamer, generate, stream

from .tiny import model

pytest.importorskip("tokenizers", reason="text needs a tokenizer")
TEXT = "one two three four hello wörld ☃☃ 漢字 😀😀"


@functools.cache
def both() -> tuple[Any, Any]:
    tok = votive.text.train_bpe([TEXT], vocab_size=280, progress=False)
    return model(vocab_size=280), tok


def scripted(text: str) -> Any:
    """A processor that makes any model write a text, then go on with its last token."""
    _, tok = both()
    ids = tok.encode(text)
    start: list[int] = []

    def force(input_ids: Any, scores: Any) -> Any:
        if not start:
            start.append(input_ids.shape[1])
        at = min(input_ids.shape[1] - start[0], len(ids) - 1)
        forced = votive.full_like(scores, -votive.inf)
        forced[:, ids[at]] = 0.0
        return forced

    return [force], len(ids)


def test_events_are_the_tokens_of_generate_and_their_text() -> None:
    net, tok = both()
    ask: dict[str, Any] = {"max_new_tokens": 40, "do_sample": True, "seed": 1, "temperature": 4.0}
    events = list(stream(net, tok, "one two", **ask))
    expected = generate(net, [tok.encode("one two")], **ask)[0].tolist()
    tokens = [e.token for e in events]
    assert tok.encode("one two") + tokens == expected
    assert "".join(e.text for e in events) == tok.decode(tokens)
    assert [e.finish_reason for e in events] == [None] * 39 + ["length"]


@pytest.mark.parametrize("prompt", ["text", "ids", "tensor", "batch of one"])
def test_a_prompt_is_a_text_or_ids(prompt: str) -> None:
    net, tok = both()
    ids = tok.encode("hello")
    given = {"text": "hello", "ids": ids, "tensor": votive.tensor(ids), "batch of one": votive.tensor([ids])}[prompt]
    found = [e.token for e in stream(net, tok, given, max_new_tokens=5)]
    assert found == generate(net, [ids], max_new_tokens=5)[0, len(ids) :].tolist()


def test_probabilities_are_those_the_model_gave() -> None:
    net, tok = both()
    events = list(stream(net, tok, "one", max_new_tokens=5, do_sample=True, temperature=9.0, seed=0))
    ids = tok.encode("one") + [e.token for e in events]
    with votive.no_grad():
        logits = net(votive.tensor([ids])).logits[0].float()
    for i, event in enumerate(events):
        at = len(tok.encode("one")) + i
        expected = logits[at - 1].log_softmax(-1)[ids[at]].item()
        assert event.logprob == pytest.approx(expected, abs=1e-4)
        assert event.probability == pytest.approx(votive.tensor(expected).exp().item(), rel=1e-3)


def test_characters_come_whole() -> None:
    net, tok = both()
    forced, count = scripted("漢字 😀☃")
    events = list(stream(net, tok, "one", max_new_tokens=count, logits_processor=forced))
    assert "".join(e.text for e in events) == "漢字 😀☃"
    assert not any("�" in e.text for e in events)
    assert any(e.text == "" for e in events), "no character needed several tokens"


@pytest.mark.parametrize("stops", ["three", ["zzz", "three"], [" thr", "three"]])
def test_nothing_of_a_stop_string_is_shown(stops: Any) -> None:
    net, tok = both()
    forced, _ = scripted("one two three four")
    events = list(stream(net, tok, "x", max_new_tokens=60, logits_processor=forced, stop_strings=stops))
    first = " thr" if " thr" in stops else "three"
    assert "".join(e.text for e in events) == "one two three four"[: "one two three".index(first)]
    assert events[-1].finish_reason == "stop"
    assert events[-1].stop == first


@pytest.mark.parametrize("stop", ["<|endoftext|>", "endof", "three<|endoftext|>"])
def test_a_stop_string_may_be_or_touch_a_special_token(stop: str) -> None:
    net, tok = both()
    assert tok.encode("<|endoftext|>") == [tok.eos_token_id]
    forced, count = scripted("one two three<|endoftext|> four")
    ask: Any = {"max_new_tokens": count, "logits_processor": forced, "stop_strings": stop}
    events = list(stream(net, tok, "x", **ask))
    assert "".join(e.text for e in events) == "one two three".removesuffix(stop.split("<")[0])
    assert (events[-1].token, events[-1].finish_reason, events[-1].stop) == (tok.eos_token_id, "stop", stop)


def test_what_only_looked_like_a_stop_string_is_shown_in_the_end() -> None:
    net, tok = both()
    forced, count = scripted("one two th")
    events = list(stream(net, tok, "x", max_new_tokens=count, logits_processor=forced, stop_strings="three"))
    assert "".join(e.text for e in events) == "one two th"
    assert events[-1].finish_reason == "length"


def test_generate_ends_at_a_stop_string_and_keeps_its_tokens() -> None:
    net, tok = both()
    forced, _ = scripted("one two three four")
    out = generate(
        net,
        [tok.encode("x")],
        max_new_tokens=60,
        logits_processor=forced,
        stop_strings=["three"],
        tokenizer=tok,
        return_dict_in_generate=True,
    )
    assert tok.decode(out.sequences[0]).startswith("xone two three")
    assert "four" not in tok.decode(out.sequences[0])
    assert out.finish_reasons == ["stop"]
    with pytest.raises(ValueError, match="need the tokenizer"):
        generate(net, [[1]], stop_strings="three")


def test_the_token_that_ends_a_text_is_not_shown() -> None:
    net, tok = both()
    free = generate(net, [tok.encode("one")], max_new_tokens=8)[0].tolist()
    eos = free[len(tok.encode("one")) + 4]
    events = list(stream(net, tok, "one", max_new_tokens=8, eos_token_id=eos))
    assert events[-1].token == eos
    assert events[-1].finish_reason == "eos"
    tokens = [e.token for e in events[:-1]]
    assert "".join(e.text for e in events) == tok.decode(tokens)


def test_closing_the_iterator_ends_the_work() -> None:
    net, tok = both()
    runs: list[int] = []
    handle = net.register_forward_hook(lambda *a: runs.append(1))
    prefix = PrefixCache()
    events = stream(net, tok, "one", max_new_tokens=50, past_key_values=prefix)
    first = [next(events).token for _ in range(3)]
    events.close()
    handle.remove()
    assert len(runs) == 3
    assert list(events) == []
    assert prefix.ids == (tok.encode("one") + first)[: len(prefix)]
    # What was done is not lost: the next call goes on from there.
    again = [e.token for e in stream(net, tok, "one", max_new_tokens=5, past_key_values=prefix)]
    assert again[:3] == first


def test_no_mode_is_left_on_while_the_iterator_waits() -> None:
    net, tok = both()
    events = stream(net, tok, "one", max_new_tokens=3)
    next(events)
    assert votive.is_grad_enabled()
    events.close()


def test_mistakes_are_raised_at_once() -> None:
    net, tok = both()
    with pytest.raises(ValueError, match=r"no setting 'temprature'\. Did you mean 'temperature'"):
        stream(net, tok, "one", temprature=1.0)
    with pytest.raises(ValueError, match="beams are known only at their end"):
        stream(net, tok, "one", num_beams=2)
    with pytest.raises(ValueError, match="one text at a time"):
        stream(net, tok, [[1, 2], [3, 4]])
    with pytest.raises(ValueError, match="the prompt is empty"):
        stream(net, tok, "")


def test_a_text_streamer_prints_what_decode_gives(capsys: pytest.CaptureFixture[str]) -> None:
    net, tok = both()
    for skip in (False, True):
        ids = generate(
            net,
            [tok.encode("one two")],
            max_new_tokens=20,
            streamer=TextStreamer(tok, skip),
            do_sample=True,
            temperature=3.0,
            seed=4,
        )[0].tolist()
        shown = capsys.readouterr().out
        assert shown == tok.decode(ids[len(tok.encode("one two")) :] if skip else ids) + "\n"


def test_a_text_iterator_streamer_serves_another_thread() -> None:
    net, tok = both()
    streamer = TextIteratorStreamer(tok, skip_prompt=True, timeout=60)
    found: list[Any] = []
    thread = threading.Thread(
        target=lambda: found.append(generate(net, [tok.encode("one")], max_new_tokens=20, streamer=streamer))
    )
    thread.start()
    text = "".join(streamer)
    thread.join()
    assert text == tok.decode(found[0][0, len(tok.encode("one")) :])


def test_a_streamer_takes_one_text() -> None:
    net, tok = both()
    with pytest.raises(ValueError, match="takes one text"):
        generate(net, [[1], [2]], streamer=TextStreamer(tok))
