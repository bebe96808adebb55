"""Tasks on pictures and recordings give what transformers' pipelines give."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pytest

import votive

from ..speech.small import sound, written
from .made import folder, place, same, theirs, tokenizer, torch, transformers

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::UserWarning:transformers.*")]
Image = pytest.importorskip("PIL.Image", reason="pictures of pillow")

SIDES = {"image_size": 16, "patch_size": 8}
SMALL = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}


def drawn(seed: int = 0, height: int = 21, width: int = 19) -> Any:
    """A picture of noise."""
    values = np.random.default_rng(seed).integers(0, 256, (height, width, 3)).astype(np.uint8)
    return Image.fromarray(values)


def saved(name: str, model: Any, processor: Any) -> pathlib.Path:
    """A folder with a model of transformers', its weights larger than usual, and its processor."""
    path = place() / name
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() > 1:
                p.mul_(6.0)
    model.eval().save_pretrained(path)
    processor.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def vit() -> pathlib.Path:
    torch.manual_seed(0)
    config = transformers.ViTConfig(num_labels=7, **SIDES, **SMALL)
    processor = transformers.ViTImageProcessor(size={"height": 16, "width": 16})
    return saved("vit", transformers.ViTForImageClassification(config), processor)


def test_classes_of_pictures(vit: pathlib.Path, tmp_path: pathlib.Path) -> None:
    ours, reference = votive.pipeline(model=vit), theirs("image-classification", vit)
    assert ours.task == "image-classification"
    drawn(3).save(tmp_path / "one.png")
    pictures = [drawn(1), drawn(2, 30, 10), drawn(3)]
    expected = reference(pictures)
    for options in ({}, {"top_k": 2}, {"top_k": 100}, {"function_to_apply": "none"}):
        same(ours(pictures[0], **options), reference(pictures[0], **options), f"{options}", 1e-4)
    same(ours(pictures), expected, "several", 1e-4)
    same(ours(pictures, batch_size=2), expected, "batch", 1e-4)
    same(ours(str(tmp_path / "one.png")), expected[2], "path", 1e-4)
    same(ours(np.asarray(pictures[0])), expected[0], "array", 1e-4)
    same(ours(images=pictures[0]), expected[0], "images", 1e-4)
    with pytest.raises(ValueError, match="not fetched from the web"):
        ours("https://example.org/cat.png")


def test_vectors_of_pictures(vit: pathlib.Path) -> None:
    ours, reference = (f("image-feature-extraction", vit) for f in (_ours, theirs))
    picture = drawn(1)
    same(ours(picture), reference(picture), "vectors", 1e-4)
    same(_ours("image-feature-extraction", vit)([picture])[0], reference(picture), "list", 1e-4)
    assert ours(picture, return_tensors=True).shape == (1, 5, 16)


def _ours(task: str, path: Any, **options: Any) -> Any:
    return votive.pipeline(task, model=path, **options)


def test_labels_of_pictures_that_are_named_when_asked() -> None:
    torch.manual_seed(1)
    tok = tokenizer()
    text = {"vocab_size": len(tok), "eos_token_id": tok.sep_token_id, "max_position_embeddings": 32, **SMALL}
    config = transformers.CLIPConfig(text_config=text, vision_config={**SIDES, **SMALL}, projection_dim=8)
    processor = transformers.CLIPImageProcessor(size={"shortest_edge": 16}, crop_size={"height": 16, "width": 16})
    path = saved("clip", transformers.CLIPModel(config), processor)
    tok.save_pretrained(path)
    ours, reference = (f("zero-shot-image-classification", path) for f in (_ours, theirs))
    labels, pictures = ["cat", "dog", "new york"], [drawn(1), drawn(2)]
    expected = reference(pictures, candidate_labels=labels)
    same(ours(pictures, candidate_labels=labels), expected, "plain", 1e-4)
    same(ours(pictures, labels, batch_size=2), expected, "batch", 1e-4)
    other = {"candidate_labels": labels, "hypothesis_template": "about {}"}
    same(ours(pictures[0], **other), reference(pictures[0], **other), "template", 1e-4)
    with pytest.raises(ValueError, match="at least one"):
        ours(pictures[0])


def test_classes_of_pixels() -> None:
    torch.manual_seed(2)
    config = transformers.SegformerConfig(
        num_labels=4, num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[8, 16],
        patch_sizes=[3, 3], strides=[2, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2], decoder_hidden_size=8,
    )  # fmt: skip
    processor = transformers.SegformerImageProcessor(size={"height": 16, "width": 16})
    path = saved("segformer", transformers.SegformerForSemanticSegmentation(config), processor)
    ours, reference = (f("image-segmentation", path) for f in (_ours, theirs))
    picture = drawn(5)
    got, expected = ours(picture), reference(picture)
    assert [(g["label"], g["score"]) for g in got] == [(e["label"], e["score"]) for e in expected]
    for a, b in zip(got, expected, strict=True):
        mine, other = np.asarray(a["mask"]), np.asarray(b["mask"])
        assert mine.shape == other.shape == (21, 19)
        # A pixel between two classes may go either way.
        assert (mine != other).mean() < 0.01
    with pytest.raises(ValueError, match="there is 'semantic'"):
        ours(picture, subtask="panoptic")


def test_things_in_pictures() -> None:
    torch.manual_seed(4)
    network = {"embedding_size": 8, "hidden_sizes": [16, 24], "depths": [1, 1], "out_features": ["stage2"]}
    config = transformers.DetrConfig(
        backbone_config=transformers.ResNetConfig(**network), num_labels=3, d_model=16, encoder_layers=1,
        decoder_layers=1, encoder_ffn_dim=24, decoder_ffn_dim=24, encoder_attention_heads=2,
        decoder_attention_heads=2, num_queries=6,
    )  # fmt: skip
    processor = transformers.DetrImageProcessor(size={"shortest_edge": 32, "longest_edge": 48})
    path = saved("detr", transformers.DetrForObjectDetection(config), processor)
    ours, reference = votive.pipeline(model=path), theirs("object-detection", path)
    assert ours.task == "object-detection"
    pictures = [drawn(1, 40, 40), drawn(2, 30, 50), drawn(3)]
    for options in ({"threshold": 0.1}, {"threshold": 0.4}, {}):
        expected = [reference(one, **options) for one in pictures]
        for got in (ours(pictures, **options), ours(pictures, batch_size=3, **options)):
            for one, other in zip(got, expected, strict=True):
                assert len(one) == len(other)
                for a, b in zip(one, other, strict=True):
                    assert a["label"] == b["label"]
                    assert abs(a["score"] - b["score"]) < 1e-4
                    # Corners are cut to whole pixels, which rounding may move by one.
                    assert list(a["box"]) == list(b["box"])
                    assert all(abs(a["box"][c] - b["box"][c]) <= 1 for c in b["box"])
    assert sum(map(len, ours(pictures, threshold=0.1))) > 0


def test_pictures_of_several_sizes_are_padded_as_transformers_pads_them() -> None:
    sizes = {"size": {"shortest_edge": 24, "longest_edge": 40}}
    for fields in (sizes, {**sizes, "do_pad": False}, {**sizes, "pad_size": {"height": 50, "width": 60}}):
        reference = transformers.DetrImageProcessor(**fields)
        processor = votive.models.DetrImageProcessor(**fields)
        pictures = [drawn(1, 40, 40), drawn(2, 30, 100), drawn(3, 50, 20)]
        pictures = pictures if fields.get("do_pad", True) else pictures[:1] * 2
        expected, got = reference(pictures, return_tensors="np"), processor(pictures, return_tensors="np")
        assert set(got) == set(expected)
        for name, value in expected.items():
            np.testing.assert_allclose(got[name], value, atol=1e-5)
    old = votive.models.DetrImageProcessor.from_dict({"size": 24, "max_size": 40, "pad_and_return_pixel_mask": False})
    assert (old.size, old.do_pad) == ({"shortest_edge": 24, "longest_edge": 40}, False)
    with pytest.raises(ValueError, match="not fit into pad_size"):
        processor(drawn(1, 40, 40), pad_size={"height": 4, "width": 4})


def test_what_pictures_say() -> None:
    torch.manual_seed(3)
    tok = tokenizer()
    encoder = transformers.ViTConfig(**SIDES, **SMALL)
    decoder = transformers.TrOCRConfig(
        vocab_size=len(tok), d_model=16, decoder_layers=1, decoder_attention_heads=2, decoder_ffn_dim=24,
        max_position_embeddings=32, cross_attention_hidden_size=16, bos_token_id=2, eos_token_id=3, pad_token_id=0,
        decoder_start_token_id=2,
    )  # fmt: skip
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    config.decoder_start_token_id, config.pad_token_id, config.eos_token_id = 2, 0, 3
    model = transformers.VisionEncoderDecoderModel(config)
    model.generation_config.decoder_start_token_id = 2
    processor = transformers.ViTImageProcessor(size={"height": 16, "width": 16})
    path = saved("trocr", model, processor)
    tok.save_pretrained(path)
    ours = votive.pipeline(model=path)
    assert ours.task == "image-to-text"
    for seed in range(2):
        pixels = processor(drawn(seed), return_tensors="pt").pixel_values
        expected = tok.batch_decode(model.generate(pixels, max_new_tokens=6), skip_special_tokens=True)
        assert ours(drawn(seed), max_new_tokens=6) == [{"generated_text": expected[0]}]
    assert len(ours([drawn(0), drawn(1)], generate_kwargs={"max_new_tokens": 3}, batch_size=2)) == 2
    with pytest.raises(ValueError, match="came twice"):
        ours(drawn(0), max_new_tokens=1, generate_kwargs={"max_new_tokens": 3})


@pytest.fixture(scope="module")
def whisper() -> Any:
    """A small Whisper and its folder; a window is half a second."""
    path = written(place() / "whisper")
    extractor = votive.speech.WhisperFeatureExtractor()
    model = votive.models.WhisperForConditionalGeneration.from_pretrained(path)
    extract = votive.speech.WhisperFeatureExtractor.for_model(model)
    assert extract.chunk_length == 0  # whole seconds only: the test gives its own
    extractor.chunk_length = 0.5
    extractor.__class__ = Half
    tok = votive.text.Tokenizer.from_pretrained(path)
    return votive.pipeline("automatic-speech-recognition", model=model, tokenizer=tok, feature_extractor=extractor)


class Half(votive.speech.WhisperFeatureExtractor):
    """With a window of half a second."""

    @property
    def n_samples(self) -> int:
        return 8000


def test_recordings_become_texts(whisper: Any, tmp_path: pathlib.Path) -> None:
    model, tok = whisper.model, whisper.tokenizer
    short = sound(0.4)
    options = {"language": "en", "num_beams": 1, "max_new_tokens": 12}
    features = whisper.feature_extractor(short, return_attention_mask=True)
    ids = model.generate(features.input_features, attention_mask=features.attention_mask, **options)
    expected = tok.decode([t for t in ids[0].tolist() if t < 262])
    assert whisper(short, **options) == {"text": expected}
    assert whisper(short.numpy(), generate_kwargs=options) == {"text": expected}
    assert whisper({"raw": short.numpy(), "sampling_rate": 16000}, **options) == {"text": expected}
    assert whisper([short, sound(0.3, 1)], batch_size=2, **options)[0] == {"text": expected}
    # Nothing needs to be said of how: five beams, as many tokens as there are.
    assert whisper(short)["text"] == whisper(short, num_beams=5)["text"]
    timed = whisper(sound(1.2), return_timestamps=True, **options)
    assert list(timed) == ["text", "chunks"]
    assert timed["text"] == "".join(part["text"] for part in timed["chunks"])
    times = [t for part in timed["chunks"] for t in part["timestamp"]]
    assert times == sorted(times)
    for wrong, message in (
        ({"chunk_length_s": 30}, "long recordings by itself"), ({"return_timestamps": "word"}, "times of words"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            whisper(short, **wrong)
    with pytest.raises(ValueError, match="not fetched from the web"):
        whisper("https://example.org/talk.wav")
    with pytest.raises(ValueError, match="'sampling_rate'"):
        whisper({"raw": short})


WAVES = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24,
    "conv_dim": (8, 8), "conv_stride": (5, 4), "conv_kernel": (10, 4), "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 2,
}  # fmt: skip
LETTERS = {"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3, "|": 4, "A": 5, "B": 6, "C": 7}


def listener(kind: str, seed: int, **config: Any) -> pathlib.Path:
    """A folder of a small wav2vec 2.0 with its letters."""
    torch.manual_seed(seed)
    path = place() / f"waves{kind}{seed}"
    made = transformers.Wav2Vec2Config(vocab_size=len(LETTERS), pad_token_id=0, **WAVES, **config)
    model = getattr(transformers, f"Wav2Vec2{kind}")(made)
    extractor = transformers.Wav2Vec2FeatureExtractor(return_attention_mask=config.get("feat_extract_norm") == "layer")
    saved(path.name, model, extractor)
    (path / "vocab.json").write_text(json.dumps(LETTERS))
    transformers.Wav2Vec2CTCTokenizer(str(path / "vocab.json")).save_pretrained(path)
    return path


@pytest.mark.parametrize("norm", ["group", "layer"])
def test_letters_of_recordings(norm: str) -> None:
    path = listener("ForCTC", 1 if norm == "group" else 2, feat_extract_norm=norm)
    ours, reference = votive.pipeline(model=path), theirs("automatic-speech-recognition", path)
    assert ours.task == "automatic-speech-recognition"
    sounds = [sound(0.11 + 0.03 * i, i).numpy() for i in range(3)]
    assert len({ours(s)["text"] for s in sounds}) > 1
    for options in (
        {}, {"return_timestamps": "char"}, {"return_timestamps": "word"}, {"chunk_length_s": 0.05},
        {"chunk_length_s": 0.06, "stride_length_s": (0.01, 0.005), "return_timestamps": "char"},
    ):  # fmt: skip
        for one in sounds:
            same(ours(one, **options), reference(one, **options), f"{options}")
        # Of a batch, too: recordings of several lengths are heard one by one.
        same(ours(sounds, batch_size=2, **options), [reference(one, **options) for one in sounds], "batch")
    rated = {"raw": sounds[0], "sampling_rate": 16000}
    same(ours(dict(rated)), reference(dict(rated)), "dict")
    with pytest.raises(ValueError, match="may be 'char' or 'word'"):
        ours(sounds[0], return_timestamps=True)
    with pytest.raises(ValueError, match="longer than what they overlap by"):
        ours(sounds[0], chunk_length_s=0.02, stride_length_s=0.02)


def test_a_tokenizer_of_words_is_no_tokenizer_of_letters() -> None:
    path = listener("ForCTC", 1, feat_extract_norm="group")
    with pytest.raises(ValueError, match=r"must be a votive\.speech\.Wav2Vec2CTCTokenizer"):
        votive.pipeline(model=path, tokenizer=object())


def test_classes_of_recordings() -> None:
    path = listener("ForSequenceClassification", 3, num_labels=6)
    ours, reference = votive.pipeline(model=path), theirs("audio-classification", path)
    assert ours.task == "audio-classification"
    sounds = [sound(0.1 + 0.03 * i, i).numpy() for i in range(3)]
    for options in ({}, {"top_k": 2}, {"top_k": 100}, {"function_to_apply": "sigmoid"}):
        expected = [reference(one, **options) for one in sounds]
        same(ours(sounds[0], **options), expected[0], f"{options}", 1e-4)
        same(ours(sounds, batch_size=3, **options), expected, f"{options}", 1e-4)
    with pytest.raises(ValueError, match="'tanh' is not known"):
        ours(sounds[0], function_to_apply="tanh")


def test_pictures_of_texts_are_a_task(tmp_path: pathlib.Path) -> None:
    (tmp_path / "model_index.json").write_text(json.dumps({"_class_name": "FluxPipeline"}))
    for task in ("text-to-image", None):
        with pytest.raises(ValueError, match="is a FluxPipeline, for which there is none here"):
            votive.pipeline(task, model=tmp_path)


def test_folders_of_other_tasks_are_refused() -> None:
    with pytest.raises(ValueError, match="is no such model"):
        votive.pipeline("image-classification", model=folder("ForMaskedLM"))
