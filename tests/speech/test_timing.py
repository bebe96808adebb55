"""Ways through attention: the path, the smoothing, and words made of tokens."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import votive
from votive.speech import Segment, dynamic_time_warping, median_filter
from votive.speech.words import WordTiming, add_word_timestamps, merge_punctuation, split_words


def cheapest(cost: np.ndarray) -> float:
    """The least sum of all ways, each tried."""
    n, m = cost.shape
    best = np.inf
    for steps in itertools.product(((1, 0), (0, 1), (1, 1)), repeat=n + m - 2):
        i = j = 0
        total = cost[0, 0]
        for di, dj in steps:
            if (i, j) == (n - 1, m - 1):
                break
            i, j = i + di, j + dj
            if i >= n or j >= m:
                break
            total += cost[i, j]
        if (i, j) == (n - 1, m - 1):
            best = min(best, total)
    return best


def test_the_way_found_is_the_cheapest() -> None:
    rng = np.random.default_rng(0)
    for n, m in ((1, 1), (1, 4), (4, 1), (3, 3), (2, 5), (4, 3)):
        cost = rng.standard_normal((n, m))
        rows, columns = dynamic_time_warping(cost)
        assert (rows[0], columns[0], rows[-1], columns[-1]) == (0, 0, n - 1, m - 1)
        steps = set(zip(np.diff(rows).tolist(), np.diff(columns).tolist(), strict=True))
        assert steps <= {(0, 1), (1, 0), (1, 1)}
        assert cost[rows, columns].sum() == pytest.approx(cheapest(cost), abs=1e-6)


@pytest.mark.parity
def test_the_way_found_is_that_of_transformers() -> None:
    module = pytest.importorskip("transformers.models.whisper.generation_whisper")
    rng = np.random.default_rng(1)
    for shape in ((5, 40), (30, 31), (12, 5)):
        # Whole numbers, so that many ways cost the same and the choice among them shows.
        cost = rng.integers(0, 3, shape).astype(float)
        for got, expected in zip(dynamic_time_warping(cost), module._dynamic_time_warping(cost), strict=True):
            assert got.tolist() == expected.tolist()


def test_an_empty_matrix_has_no_way() -> None:
    with pytest.raises(ValueError, match="not empty"):
        dynamic_time_warping(votive.ones(0, 3))


@pytest.mark.parametrize("width", [1, 3, 7])
def test_medians_are_those_of_each_window(width: int) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 20)).astype(np.float32)
    wide = np.pad(x, ((0, 0), (0, 0), (width // 2,) * 2), mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(wide, width, axis=-1)
    assert (median_filter(votive.tensor(x), width).numpy() == np.median(windows, -1)).all()


def test_a_filter_needs_an_odd_width_and_room() -> None:
    with pytest.raises(ValueError, match="odd"):
        median_filter(votive.ones(8), 4)
    assert median_filter(votive.tensor([1.0, 2.0]), 7).tolist() == [1.0, 2.0]


class Letters:
    """A tokenizer whose tokens are bytes; those above 255 are words."""

    words = {256: " hello", 257: " wor", 258: "ld", 259: ".", 260: " ("}

    def token_bytes(self, token: int) -> bytes:
        return self.words[token].encode() if token > 255 else bytes([token])


def test_tokens_become_words_at_spaces_and_marks() -> None:
    words = split_words(Letters(), [260, 256, 257, 258, 259], "en")
    assert [w for w, _ in words] == [" (", " hello", " world", "."]
    assert [ids for _, ids in words] == [[260], [256], [257, 258], [259]]


def test_characters_of_several_tokens_stay_whole() -> None:
    raw = [*" 你好".encode()]
    assert [w for w, _ in split_words(Letters(), raw, "zh")] == [" ", "你", "好"]
    # Bytes that are no character come as they are, and nothing is lost.
    broken = split_words(Letters(), [0x68, 0xFF, 0x69, 0xE4], "en")
    assert [i for _, ids in broken for i in ids] == [0x68, 0xFF, 0x69, 0xE4]


def timed(*words: tuple[str, float, float]) -> list[WordTiming]:
    return [WordTiming(w, [i], a, b, 1.0) for i, (w, a, b) in enumerate(words)]


def test_marks_go_to_the_words_they_belong_to() -> None:
    words = timed((" “", 0, 1), ("Yes", 1, 2), (",”", 2, 3), (" he", 3, 4), (".", 4, 5))
    merged = merge_punctuation(words, "“", ".,”")
    assert [w.word for w in merged] == [" “Yes,”", " he."]
    assert [w.tokens for w in merged] == [[0, 1, 2], [3, 4]]


def test_words_go_to_their_segments_which_begin_and_end_with_them() -> None:
    words = timed((" a", 0.1, 0.3), (" b", 0.3, 0.6), (".", 0.6, 0.6), (" c", 1.0, 1.2))
    segments = [
        Segment(start=10.0, end=10.8, tokens=[500, 0, 1, 2, 501]),
        Segment(start=10.8, end=11.4, tokens=[501, 3, 502]),
    ]
    until = add_word_timestamps(segments, words, end_of_text=400, offset=10.0, spoken_until=10.0)
    said = [[(w.word, w.start, w.end) for w in s.words or []] for s in segments]
    assert said == [[(" a", 10.1, 10.3), (" b.", 10.3, 10.6)], [(" c", 11.0, 11.2)]]
    assert [(s.start, s.end) for s in segments] == [(10.1, 10.6), (11.0, 11.2)]
    assert until == 11.2


def test_a_word_after_a_sentence_does_not_last_for_the_pause() -> None:
    words = timed((" a", 0.0, 0.2), (".", 0.2, 0.4), (" b", 0.4, 5.0), (" c", 5.0, 5.2))
    segment = Segment(start=0.0, end=5.2, tokens=[0, 1, 2, 3])
    add_word_timestamps([segment], words, end_of_text=400, offset=0.0, spoken_until=0.0)
    assert segment.words is not None
    assert [(w.word, w.start) for w in segment.words] == [(" a.", 0.0), (" b", 4.6), (" c", 5.0)]
