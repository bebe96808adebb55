"""A Whisper with random weights and a tokenizer to go with it, in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import votive
from tests import tiny_sizes

WORDS = 262
# After the words: the end, the start, two languages, two tasks, three signs, no times, times.
END, START, ENGLISH, GERMAN, TRANSLATE, TRANSCRIBE = range(WORDS, WORDS + 6)
PREVIOUS, NO_SPEECH, NO_TIMES = WORDS + 7, WORDS + 8, WORDS + 9
FIRST_TIME, TIMES = WORDS + 10, 26
SECONDS = 0.5  # of a window


def written(folder: Path, seed: int = 0) -> Path:
    """Write the model and its tokenizer; a window is half a second."""
    text = ["the cat sat on the mat and the dog ran to the hill", "so it went, on and on."]
    votive.text.train_bpe(text, WORDS, progress=False).save_pretrained(folder)
    votive.manual_seed(seed)
    config = votive.models.WhisperConfig(
        vocab_size=FIRST_TIME + TIMES,
        **tiny_sizes.whisper(32, layers=(1, 2), heads=2),
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_source_positions=25,
        max_target_positions=48,
        init_std=0.3,
        decoder_start_token_id=START,
        pad_token_id=END,
        eos_token_id=END,
        bos_token_id=END,
        tie_word_embeddings=False,
    )
    model = votive.models.WhisperForConditionalGeneration(config)
    model.generation_config = {
        "lang_to_id": {"<|en|>": ENGLISH, "<|de|>": GERMAN},
        "is_multilingual": True,
        "task_to_id": {"translate": TRANSLATE, "transcribe": TRANSCRIBE},
        "no_timestamps_token_id": NO_TIMES,
        "prev_sot_token_id": PREVIOUS,
        "alignment_heads": [[0, 1], [1, 0]],
        "begin_suppress_tokens": [END],
        "suppress_tokens": [START, ENGLISH, GERMAN, PREVIOUS],
    }
    model.save_pretrained(folder)
    return folder


def sound(seconds: float, seed: int = 0) -> Any:
    """Noise that grows and falls, (samples,)."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(round(16000 * seconds)) * 0.1
    return votive.tensor((x * np.sin(np.arange(x.size) / 3000)).astype(np.float32))
