"""Small models give what transformers gave for them once; nothing else need be installed."""

from __future__ import annotations

import numpy as np
import pytest

import votive

from .golden import FILE, IDS, ROWS, inputs, model_of, scores

STORED = dict(np.load(FILE))
DECODERS = [row for row, (name, _) in ROWS.items() if "Causal" in name or "LMHead" in name]


def close(got: votive.Tensor, expected: np.ndarray) -> None:
    assert got.shape == expected.shape
    worst = np.abs(got.numpy() - expected).max() / np.abs(expected).max()
    assert worst <= 1e-4, f"differs by {worst:.2e} of the largest value"


@pytest.mark.parametrize("row", ROWS)
def test_logits_are_those_that_are_stored(row: str) -> None:
    with votive.no_grad():
        close(scores(model_of(row)(**inputs(row, votive.tensor))), STORED[row])


@pytest.mark.parametrize("row", DECODERS)
@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_token_by_token_they_are_too(row: str, cache: str) -> None:
    model = model_of(row)
    kept = votive.nn.DynamicCache() if cache == "dynamic" else votive.nn.StaticCache(7)
    with votive.no_grad():
        parts = [model(t, past_key_values=kept).logits for t in votive.tensor(IDS).split(1, 1)]
    close(votive.cat(parts, 1), STORED[row])


@pytest.mark.parametrize("row", DECODERS)
def test_padding_on_the_left_leaves_them(row: str) -> None:
    ids = votive.cat([votive.zeros(2, 3, dtype=votive.int64), votive.tensor(IDS)], 1)
    mask = (votive.arange(10) >= 3).long().expand(2, 10)
    places = (mask.cumsum(1) - 1).clamp(min=0)
    with votive.no_grad():
        got = model_of(row)(ids, attention_mask=mask, position_ids=places).logits
    close(got[:, 3:], STORED[row])


def test_every_row_is_stored_and_no_other() -> None:
    assert set(STORED) == set(ROWS)
