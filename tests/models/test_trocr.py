"""TrOCR, behind a ViT, a DeiT or a BEiT, gives and writes what transformers gives and writes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import votive
import votive.models as models
from tests import tiny_sizes

from .compare import BF16, agree, arrays, both, gradients_agree, ids, pair, torch, transformers

pytestmark = pytest.mark.parity
SEES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "image_size": 32,
    "patch_size": 8,
}
WRITES: dict[str, Any] = {
    "vocab_size": 64,
    **tiny_sizes.trocr(32, 40, layers=2, heads=4),
    "max_position_embeddings": 24,
}
# Name: (encoder, its settings, settings of the decoder).
KINDS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "vit": ("ViT", {"qkv_bias": False}, {"tie_word_embeddings": False}),
    "deit, computed positions": (
        "DeiT",
        {},
        {
            "use_learned_position_embeddings": False,
            "scale_embedding": True,
            "layernorm_embedding": False,
            "activation_function": "relu",
        },
    ),
    "beit, another width": ("Beit", {"hidden_size": 24}, {"cross_attention_hidden_size": 24}),
    "vit, projected": ("ViT", {"hidden_size": 24}, {}),
}
every = pytest.mark.parametrize("kind", KINDS)


def fresh(kind: str, dtype: Any = None, train: bool = False) -> Any:
    family, sees, writes = KINDS[kind]
    encoder = getattr(transformers, f"{family}Config")(**{**SEES, **sees})
    decoder = transformers.TrOCRConfig(**{**WRITES, **writes})
    decoder._attn_implementation = "eager"
    encoder._attn_implementation = "eager"
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(
        encoder, decoder, decoder_start_token_id=2, pad_token_id=1, eos_token_id=2
    )
    theirs = (transformers.VisionEncoderDecoderModel, config)
    return pair(theirs, models.VisionEncoderDecoderModel, dtype=dtype, train=train)


@cache
def models_of(kind: str, dtype: Any = None) -> Any:
    return fresh(kind, dtype)


def picture(batch: int = 2) -> tuple[Any, Any]:
    return both(np.random.default_rng(0).standard_normal((batch, 3, 32, 32)).astype(np.float32))


@every
def test_all_that_is_given_agrees(kind: str) -> None:
    reference, model = models_of(kind)
    (tp, vp), (td, vd) = picture(), ids((2, 7))
    asked = {"output_attentions": True, "output_hidden_states": True}
    with torch.no_grad(), votive.no_grad():
        expected = reference(tp, decoder_input_ids=td, **asked)
        got = model(vp, decoder_input_ids=vd, **asked)
    agree(got.logits, expected.logits)
    agree(got.encoder_last_hidden_state, expected.encoder_last_hidden_state)
    for name in (
        "decoder_hidden_states",
        "decoder_attentions",
        "cross_attentions",
        "encoder_hidden_states",
        "encoder_attentions",
    ):
        assert len(got[name]) == len(expected[name])
        for a, b in zip(got[name], expected[name]):
            agree(a, b)


@every
def test_a_padded_text_agrees(kind: str) -> None:
    reference, model = models_of(kind)
    (tp, vp), (td, vd) = picture(), ids((2, 7))
    mask = [[1] * 7, [1] * 4 + [0] * 3]
    tm, vm = both(mask)
    with torch.no_grad(), votive.no_grad():
        expected = reference(tp, decoder_input_ids=td, decoder_attention_mask=tm).logits
        got = model(vp, decoder_input_ids=vd, decoder_attention_mask=vm).logits
    agree(got, expected, where=mask)


@every
def test_the_loss_and_all_gradients_agree(kind: str) -> None:
    reference, model = fresh(kind, train=True)
    # Nothing looks at the vector of the whole picture.
    reference.encoder.pooler, model.encoder.pooler = None, None
    (tp, vp), labels = picture(), [[5, 9, 2, -100], [7, 8, 30, 2]]
    tl, vl = both(labels)
    expected, got = reference(tp, labels=tl), model(vp, labels=vl)
    agree(got.loss.reshape(1), expected.loss.reshape(1))
    agree(got.logits, expected.logits)
    expected.loss.backward()
    got.loss.backward()
    gradients_agree(reference, model, 2e-4)


@every
def test_decoding_step_by_step_gives_what_a_whole_pass_gives(kind: str) -> None:
    reference, model = models_of(kind)
    (tp, vp), (td, vd) = picture(), ids((2, 10))
    with torch.no_grad():
        expected = reference(tp, decoder_input_ids=td).logits
    with votive.no_grad():
        seen, kept, parts = model.get_encoder()(vp), None, []
        for chunk in vd.split([1, 1, 4, 1, 3], 1):
            out = model(encoder_outputs=seen, decoder_input_ids=chunk, past_key_values=kept, use_cache=True)
            kept = out.past_key_values
            parts.append(out.logits)
    agree(votive.cat(parts, 1), expected)


@every
@pytest.mark.parametrize("beams", [1, 3])
def test_it_writes_what_transformers_writes(kind: str, beams: int) -> None:
    reference, model = fresh(kind)
    told(reference, model)
    tp, vp = picture(3)
    # A head that is the table of words likes to repeat itself.
    asked = {
        "max_new_tokens": 12,
        "min_new_tokens": 6,
        "num_beams": beams,
        "do_sample": False,
        "no_repeat_ngram_size": 1,
    }
    with torch.no_grad():
        expected = reference.generate(tp, **asked)
    got = model.generate(vp, **asked)
    assert got.tolist() == expected.tolist()
    assert len({tuple(row) for row in got.tolist()}) == 3, "pictures make no difference"


def told(reference: Any, model: Any) -> None:
    """Let what is written depend on the picture and on what was written, in both."""
    torch.manual_seed(2)
    with torch.no_grad():
        for name, p in reference.decoder.named_parameters():
            if "embed" in name and p.dim() == 2:
                p.copy_(torch.randn_like(p))
            elif "encoder_attn.v_proj" in name or "encoder_attn.out_proj" in name:
                p.mul_(8)
    model.load_weights(arrays(reference.state_dict()))


def test_what_a_decoder_looks_at_comes_out_of_generating() -> None:
    _, model = models_of("vit")
    found = model.generate(
        picture()[1], max_new_tokens=4, min_new_tokens=4, output_attentions=True, return_dict_in_generate=True
    )
    assert [len(step) for step in found.cross_attentions] == [2] * 4
    assert found.cross_attentions[1][0].shape == (2, 4, 1, 17)
    assert len(found.encoder_attentions) == 2


def test_keys_of_the_picture_are_computed_once() -> None:
    model = models_of("vit")[1]
    calls: list[int] = []
    cross = model.decoder.model["decoder"].layers[0].encoder_attn.k_proj
    handle = cross.register_forward_hook(lambda *_: calls.append(1))
    model.generate(picture()[1], max_new_tokens=5, min_new_tokens=5)
    handle.remove()
    assert len(calls) == 1


def test_bfloat16_agrees_as_far_as_it_can_tell() -> None:
    reference, model = models_of("vit", dtype="bfloat16")
    (tp, vp), (td, vd) = picture(), ids((2, 7))
    with torch.no_grad(), votive.no_grad():
        expected = reference(tp.to(torch.bfloat16), decoder_input_ids=td).logits
        got = model(vp.to(votive.bfloat16), decoder_input_ids=vd).logits
    agree(got, expected, BF16)


@every
def test_folders_go_both_ways(kind: str, tmp_path: Any) -> None:
    reference, model = models_of(kind)
    (tp, vp), (td, vd) = picture(), ids((2, 5))
    reference.save_pretrained(tmp_path / "theirs")
    again = models.AutoModelForVision2Seq.from_pretrained(tmp_path / "theirs")
    model.save_pretrained(tmp_path / "ours")
    back = models.VisionEncoderDecoderModel.from_pretrained(tmp_path / "ours")
    with torch.no_grad(), votive.no_grad():
        expected = reference(tp, decoder_input_ids=td).logits
        for found in (again, back):
            agree(found(vp, decoder_input_ids=vd).logits, expected)
    if not reference.config.decoder.use_learned_position_embeddings:
        return  # transformers leaves computed positions without values when it loads
    theirs = transformers.VisionEncoderDecoderModel.from_pretrained(tmp_path / "ours").eval()
    with torch.no_grad():
        agree(votive.tensor(theirs(tp, decoder_input_ids=td).logits.numpy()), expected)


def test_the_decoder_alone_agrees() -> None:
    config = transformers.TrOCRConfig(**WRITES)
    reference, model = pair((transformers.TrOCRForCausalLM, config), models.TrOCRForCausalLM)
    t, v = ids((2, 6))
    with torch.no_grad(), votive.no_grad():
        agree(model(v).logits, reference(t).logits)
    asked = {"max_new_tokens": 5, "do_sample": False}
    assert model.generate(v, **asked).tolist() == reference.generate(t, **asked).tolist()
