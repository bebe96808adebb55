"""`votive ocr`: the text in pictures, by a small TrOCR."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from tests import tiny_sizes
from votive import models

Image = pytest.importorskip("PIL.Image", reason="reads pictures with pillow")
Run = Callable[..., tuple[int, str, str]]
RunJson = Callable[..., Any]


@pytest.fixture(scope="module")
def trocr(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trocr")
    tokenizer = votive.text.train_bpe(
        ["some words to read"], 300, special_tokens=("<s>", "<pad>", "</s>"), progress=False
    )
    tokenizer.save_pretrained(folder)
    votive.manual_seed(0)
    config = models.VisionEncoderDecoderConfig(
        encoder=models.ViTConfig(
            **tiny_sizes.transformer(16, 20, layers=1, heads=2), image_size=32, patch_size=8, initializer_range=0.5
        ),
        decoder=models.TrOCRConfig(
            vocab_size=len(tokenizer),
            **tiny_sizes.trocr(16, 20, layers=1, heads=2),
            max_position_embeddings=12,
            init_std=0.5,
        ),
    )
    models.VisionEncoderDecoderModel(config).save_pretrained(folder)
    processor = models.TrOCRProcessor(models.ViTImageProcessor(size=32), tokenizer)
    processor.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder, rng = tmp_path_factory.mktemp("lines"), np.random.default_rng(0)
    found = [folder / f"{i}.png" for i in range(3)]
    for path in found:
        Image.fromarray(rng.integers(0, 256, (20, 90), dtype=np.uint8)).save(path)
    return found


@pytest.mark.parametrize("beams", [1, 3])
def test_texts_are_those_of_the_library(run_json: RunJson, trocr: Path, lines: list[Path], beams: int) -> None:
    found = run_json("ocr", *lines, "--model", trocr, "--beams", beams, "--batch-size", 2)
    model = models.VisionEncoderDecoderModel.from_pretrained(trocr)
    processor = models.AutoProcessor.from_pretrained(trocr)
    x = processor(lines, return_tensors="vt").pixel_values
    ids = model.generate(x, num_beams=beams, max_new_tokens=11)
    texts = [t.strip() for t in processor.batch_decode(ids, skip_special_tokens=True)]
    assert [row["text"] for row in found["images"]] == texts
    assert [row["image"] for row in found["images"]] == [str(p) for p in lines]
    assert all(("score" in row) == (beams > 1) for row in found["images"])


def test_one_text_stands_alone_and_several_with_their_files(run: Run, trocr: Path, lines: list[Path]) -> None:
    code, out, err = run("ocr", lines[0], "--model", trocr, "--max-new-tokens", 3)
    assert (code, err) == (0, "")
    assert str(lines[0]) not in out
    code, out, _ = run("ocr", *lines, "--model", trocr, "--max-new-tokens", 3)
    assert code == 0
    assert all(f"{p}\t" in out for p in lines)


def test_a_text_that_was_cut_is_told(run_json: RunJson, trocr: Path, lines: list[Path]) -> None:
    rows = run_json("ocr", *lines, "--model", trocr, "--max-new-tokens", 1)["images"]
    assert not all(row["finished"] for row in rows)


def test_what_is_wrong_is_told(run: Run, trocr: Path, lines: list[Path], tmp_path: Path) -> None:
    code, _, err = run("ocr", lines[0])
    assert (code, "--model" in err) == (2, True)
    code, _, err = run("ocr", lines[0], "--model", trocr, "--beams", 0)
    assert (code, "--beams" in err) == (2, True)
    code, _, err = run("ocr", tmp_path / "none.png", "--model", trocr)
    assert (code, "no such file" in err) == (1, True)
    config = models.ViTConfig(
        hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1, image_size=16, patch_size=8
    )
    models.ViTModel(config).save_pretrained(tmp_path / "vit")
    code, _, err = run("ocr", lines[0], "--model", tmp_path / "vit")
    assert code == 1
    assert "is an image classifier; ocr needs a reader of lines of text in pictures" in err
