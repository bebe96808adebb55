"""Pictures of what a model hears: mels, and the sound that each token looks at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from tests import tiny_sizes
from votive import glass
from votive.glass.speech import max_pooled, time_labels

END, START, ENGLISH, TASK, NO_TIMES = range(50, 55)


@pytest.fixture(scope="module")
def model() -> Any:
    votive.manual_seed(0)
    config = votive.models.WhisperConfig(
        vocab_size=60,
        **tiny_sizes.whisper(16, layers=(1, 2), heads=2),
        max_source_positions=30,
        init_std=0.5,
        pad_token_id=END,
        eos_token_id=END,
        decoder_start_token_id=START,
    )
    found = votive.models.WhisperForConditionalGeneration(config).eval()
    found.generation_config = {
        "decoder_start_token_id": START,
        "lang_to_id": {"<|en|>": ENGLISH},
        "task_to_id": {"transcribe": TASK},
        "no_timestamps_token_id": NO_TIMES,
        "alignment_heads": [[0, 1], [1, 0]],
    }
    return found


IDS = [START, ENGLISH, TASK, NO_TIMES, 3, 4, 5, END]


def features(rows: int = 1) -> Any:
    rng = np.random.default_rng(0)
    return votive.tensor(rng.standard_normal((rows, 80, 60)).astype(np.float32))


def test_weights_are_those_the_model_gives_itself(model: Any) -> None:
    x = features(2)
    texts = votive.tensor([IDS, IDS[::-1]])
    found = glass.alignment(model, x, texts, sample=1)
    with votive.no_grad():
        out = model(x, decoder_input_ids=texts, output_attentions=True)
    for layer in range(2):
        expected = out.cross_attentions[layer][1]
        assert votive.allclose(found.weights(layer, 1), expected[1], atol=1e-5)
        assert votive.allclose(found.weights(layer), expected.mean(0), atol=1e-5)
    with pytest.raises(IndexError, match="no layer 2"):
        found.weights(2)


def test_times_are_those_of_the_words(model: Any) -> None:
    from votive.speech import Vocabulary
    from votive.speech.window import Window
    from votive.speech.words import find_alignment

    class Tokens:
        def token_bytes(self, token: int) -> bytes:
            return b" w%d" % token

    x = features()
    found = glass.alignment(model, x, IDS)
    assert (found.start, found.labels()[4:7]) == (4, ["3", "4", "5"])
    times = found.times()
    assert len(times) == 4
    assert times == sorted(times)
    words = find_alignment(Window(model, x), Tokens(), Vocabulary.of(model), IDS[:3], [3, 4, 5], found.heads, 60, "en")
    assert [w.word for w in words] == [" w3", " w4", " w5"]
    assert [w.start for w in words] == times[:-1]
    assert [w.end for w in words] == times[1:]
    cut = glass.alignment(model, x, IDS, duration=0.4)
    words = find_alignment(Window(model, x), Tokens(), Vocabulary.of(model), IDS[:3], [3, 4, 5], found.heads, 40, "en")
    assert [w.start for w in words] == cut.times()[:-1]


def test_heads_may_be_chosen_and_silence_cut(model: Any) -> None:
    short = glass.alignment(model, features(), IDS, heads=[(1, 1)], duration=0.3, start=2)
    assert short.matrix().shape == (len(IDS) - 2, 15)
    assert max(short.times()) < 0.3
    assert short.to_dict()["heads"] == [[1, 1]]


def test_pictures_have_seconds_across(model: Any, tmp_path: Path) -> None:
    found = glass.alignment(model, features(), IDS)
    whole, head = found.figure(), found.figure(1, 0)
    assert (whole.x_name, len(whole.rows), len(head.rows)) == ("seconds", 4, 8)
    assert whole.column_marks[:6] == ["0", "", "", "", "", "0.1"]
    assert whole.columns[1] == "0.02 s"
    assert (whole.low, whole.signed) == (0.0, False)  # what does not fit is nothing
    assert next(iter(found.pictures())) == "alignment"
    assert len(found.pictures()) == 1 + 2 * 3
    found.save_html(tmp_path / "a.html")
    found.save(tmp_path / "a.svg", 1)
    assert "encoder_attn mean of heads" in (tmp_path / "a.svg").read_text()
    assert "alignment" in (tmp_path / "a.html").read_text()


def test_mels_are_drawn_from_sound_or_features(tmp_path: Path) -> None:
    sound = votive.sin(votive.arange(32000.0) / 5)
    found = glass.mels(sound, n_mels=128)
    assert votive.equal(found.values[0], votive.speech.log_mel_spectrogram(sound, 128))
    picture = found.figure()
    assert (len(picture.rows), len(picture.columns)) == (32, 200)
    assert (picture.rows[-1], picture.row_marks[-1]) == ("band 0", "0")  # low bands are below
    assert picture.columns[1] == "0.01 s"
    several = glass.mels(features(3))
    assert list(several.pictures()) == ["mels, sample 0", "mels, sample 1", "mels, sample 2"]
    several.save(tmp_path / "mels.png", 2)
    assert several.to_dict()["seconds"] == 0.01


def test_neighbours_are_joined_and_named_by_round_numbers() -> None:
    values, count = max_pooled(votive.arange(7.0), 3)
    assert (values.tolist(), count) == ([2.0, 5.0, 6.0], 3)
    assert max_pooled(votive.arange(3.0), 3)[1] == 1
    assert [x for x in time_labels(100, 0.08) if x] == [f"{i / 2:g}" for i in range(16)]
    assert time_labels(0, 0.1) == []


def test_a_model_that_tells_no_special_tokens_speaks_from_its_second_on(model: Any) -> None:
    class Bare(votive.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model.model

        def forward(self, x: Any, decoder_input_ids: Any) -> Any:
            return self.inner(x, decoder_input_ids=decoder_input_ids)

    bare = Bare()
    bare.__dict__["config"] = object()
    found = glass.alignment(bare, features(), IDS)
    assert found.start == 1
    assert votive.allclose(found.weights(1, 0), glass.alignment(model, features(), IDS).weights(1, 0), atol=1e-6)


def test_wrong_texts_are_told(model: Any) -> None:
    with pytest.raises(ValueError, match="as many texts"):
        glass.alignment(model, features(2), IDS)
    with pytest.raises(ValueError, match="two tokens"):
        glass.alignment(model, features(), [START])
    with pytest.raises(ValueError, match="start must be"):
        glass.alignment(model, features(), IDS, start=0)
