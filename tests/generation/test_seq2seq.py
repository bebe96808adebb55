"""Encoders with a decoder: the same loop writes with them."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive.generation import generate
from votive.models import T5Config, T5ForConditionalGeneration

SIZES: dict[str, Any] = {
    "vocab_size": 41,
    "d_model": 16,
    "d_kv": 4,
    "d_ff": 24,
    "num_layers": 2,
    "num_heads": 4,
    "decoder_start_token_id": 0,
    "pad_token_id": 0,
    "eos_token_id": 1,
}
SOURCES = [[5, 9, 13, 2, 7], [8, 3]]


def model(**changes: Any) -> Any:
    votive.manual_seed(0)
    return T5ForConditionalGeneration(T5Config(**{**SIZES, **changes})).eval()


def by_hand(net: Any, source: list[int], count: int) -> list[int]:
    ids = [0]
    with votive.no_grad():
        for _ in range(count):
            out = net(votive.tensor([source]), decoder_input_ids=votive.tensor([ids]))
            ids.append(int(out.logits[0, -1].argmax()))
    return ids


@pytest.mark.parametrize("way", [{}, {"use_cache": False}, {"cache_implementation": "static"}], ids=str)
def test_greedy_search_takes_the_best_token_each_time(way: dict[str, Any]) -> None:
    net = model()
    expected = [by_hand(net, source, 12) for source in SOURCES]
    ask = {"max_new_tokens": 12, "suppress_tokens": None, "eos_token_id": 40, **way}
    for source, text in zip(SOURCES, expected, strict=True):
        assert generate(net, [source], **ask)[0].tolist() == text
    ids = votive.tensor([[5, 9, 13, 2, 7], [8, 3, 0, 0, 0]])
    assert generate(net, ids, **ask).tolist() == expected
    mask = votive.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]])
    assert generate(net, ids, attention_mask=mask, **ask).tolist() == expected


def test_what_the_encoder_gave_can_be_given() -> None:
    net = model()
    with votive.no_grad():
        encoded = net.get_encoder()(votive.tensor([SOURCES[0]]))
    expected = generate(net, [SOURCES[0]], max_new_tokens=6)
    assert generate(net, encoder_outputs=encoded, max_new_tokens=6).tolist() == expected.tolist()
    begun = generate(net, [SOURCES[0]], decoder_input_ids=expected[:, :3], max_new_tokens=4)
    assert begun.tolist() == expected.tolist()


def test_weights_and_states_are_there_on_request() -> None:
    out = generate(
        model(),
        [SOURCES[0]],
        max_new_tokens=3,
        return_dict_in_generate=True,
        output_attentions=True,
        output_hidden_states=True,
        eos_token_id=40,
    )
    assert out.encoder_attentions[0].shape == (1, 4, 5, 5)
    assert len(out.encoder_hidden_states) == 3
    assert [a[0].shape[-1] for a in out.decoder_attentions] == [1, 2, 3]
    assert all(c[1].shape == (1, 4, 1, 5) for c in out.cross_attentions)
    assert out.decoder_hidden_states[2][0].shape == (1, 1, 16)
    assert out.attentions is None


def test_sampling_repeats_with_a_seed() -> None:
    net = model()
    ask: dict[str, Any] = {"max_new_tokens": 8, "do_sample": True, "num_return_sequences": 2}
    one = generate(net, [SOURCES[0]], seed=3, **ask)
    assert generate(net, [SOURCES[0]], seed=3, **ask).tolist() == one.tolist()
    assert one[0].tolist() != one[1].tolist()


def test_what_an_encoder_needs_is_said() -> None:
    net = model()
    net.config.decoder_start_token_id = None
    with pytest.raises(ValueError, match="set decoder_start_token_id"):
        generate(net, [[3, 4]])
    with pytest.raises(ValueError, match="give input_ids for the encoder"):
        generate(model())
    with pytest.raises(ValueError, match="decoders only"):
        generate(model(), [[3, 4]], assistant_model=model())


@pytest.mark.parity
@pytest.mark.parametrize("beams", [1, 3])
def test_transformers_writes_the_same(beams: int) -> None:
    torch = pytest.importorskip("torch", reason="compares with torch")
    transformers = pytest.importorskip("transformers", reason="compares with transformers")
    from tests.models.compare import pair

    config = transformers.T5Config(**{**SIZES, "pad_token_id": 2}, initializer_factor=1.0)
    reference, ours = pair((transformers.T5ForConditionalGeneration, config), T5ForConditionalGeneration)
    reference.generation_config = transformers.GenerationConfig(
        decoder_start_token_id=0, pad_token_id=2, eos_token_id=1
    )
    ids = [[5, 9, 13, 3, 7], [8, 3, 2, 2, 2]]
    ask: dict[str, Any] = {"max_new_tokens": 12, "num_beams": beams, "num_return_sequences": beams}
    theirs = reference.generate(torch.tensor(ids), attention_mask=(torch.tensor(ids) != 2).long(), **ask)
    assert generate(ours, votive.tensor(ids), **ask).tolist() == theirs.tolist()
