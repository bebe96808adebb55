"""The view of the error by layer answers what the glass engine says, and leaves the model as it was."""

from __future__ import annotations

import copy

import pytest

import votive
from votive import glass

from .client import Page, Refused
from .demo_session import MODEL, begun, ids


def test_a_quantized_copy_is_compared_with_the_model(page: Page) -> None:
    begun(page)
    known = page.ask("quantization.types")
    assert "q4_k_m" in known["types"]
    assert not known["in_blocks"]
    with votive.no_grad():
        before = MODEL(ids(page)).logits
    found = page.ask("quantization.error", type="q8_0", each=True)
    made = copy.deepcopy(MODEL)
    votive.quantize_(made, "q8_0")
    wanted = glass.quantization_error(made, copy.deepcopy(MODEL), ids(page), each=True)
    assert [x["name"] for x in found["layers"]] == [x.name for x in wanted]
    assert [x["layer"] for x in found["layers"]] == [0, 1, 2, 3, None]
    for got, row in zip(found["layers"], wanted, strict=True):
        assert got["stream"] == pytest.approx(row.stream, rel=1e-4)
        assert got["kl"] == pytest.approx(row.kl, rel=1e-3, abs=1e-9)
    assert [s["address"] for s in found["sites"]] == [s.name for s in wanted.sites]
    assert found["perplexity"] == pytest.approx(wanted.perplexity, rel=1e-4)
    with votive.no_grad():
        assert MODEL(ids(page)).logits.equal(before)
    assert "votive.quantize_(quantized, 'q8_0')" in found["python"]


def test_what_cannot_be_compared_is_said(page: Page) -> None:
    begun(page)
    with pytest.raises(Refused, match="There is no type 'q4'"):
        page.ask("quantization.error", type="q4")
    with pytest.raises(Refused, match="compared with a quantized copy of itself"):
        page.ask("quantization.error", original="tales")
