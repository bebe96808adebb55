"""Every decoder of the package in parts: what they give, one after the other, are the bits of the whole."""

from __future__ import annotations

import pytest

import votive
from tests.glass.test_models import FAMILIES, made
from votive.distributed.pipelining import pipeline
from votive.distributed.pipelining.decoders import is_decoder
from votive.models import auto

CAUSAL = [f for f in FAMILIES if "causal" in auto._family(f)[1] and "seq2seq" not in auto._family(f)[1]]


@pytest.mark.parametrize("family", CAUSAL)
def test_parts_of_every_decoder(family: str) -> None:
    model, _ = made(family)
    if not is_decoder(model):
        pytest.skip("it is not the one decoder that a design describes")
    model.eval()
    tokens = votive.tensor([[5, 6, 7, 8, 9]])
    count = min(2, len(model.base_model.stack) if hasattr(model, "base_model") else 2)
    pipe = pipeline(model, (tokens,), split_spec=count)
    with votive.no_grad():
        wanted, x = model(tokens).logits, tokens
        for s in range(count):
            x = pipe.get_stage_module(s)(x)
    assert votive.equal(x, wanted)
    names = {n for s in range(count) for n in pipe.get_stage_module(s).state_dict()}
    assert names == set(model.state_dict())
