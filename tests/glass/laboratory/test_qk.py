"""Scores of heads split by what queries and keys are made of."""

from __future__ import annotations

import pytest

import votive
from tests.glass.decoders import CAUSAL, decoder
from votive import glass
from votive.glass import circuits
from votive.glass.head_weights import _rotated

from .test_attribution_graphs import coder, small

# olmo2 norms queries over all heads at once, openai-gpt the stream.
FAMILIES = [*CAUSAL, "bloom", "cohere", "falcon", "gpt_neox", "gptj", "granite", "opt"]


@pytest.mark.parametrize("family", FAMILIES)
def test_parts_of_queries_and_keys_add_up_to_the_score(family: str) -> None:
    model, ids = decoder(family)
    model.eval()
    at = "layers.1.attn.{scores,q,k,rot_q,rot_k}"
    with votive.no_grad(), glass.capture(model, at) as seen:
        model(ids[:1])
    rot = "rot_" if "layers.1.attn.rot_q" in seen else ""
    attention = glass.weights(model)._attention(1)
    scale = attention.head_dim**-0.5 if attention.scale is None else attention.scale
    for head, query, key in ((0, -1, 2), (1, 3, 0)):
        found = circuits.qk_attribution(model, ids[:1], 1, head, query=query, key=key)
        q = seen[f"layers.1.attn.{rot}q"][0, query, head]
        k = seen[f"layers.1.attn.{rot}k"][0, key, glass.weights(model).key_head(1, head)]
        assert votive.allclose(found.values.sum(), (q * k).sum() * scale, atol=1e-5)
        if family not in ("bloom", "gemma2"):  # a distance, and a cap, on top
            assert votive.allclose(found.values.sum(), seen["layers.1.attn.scores"][0, head, query, key], atol=1e-5)


def test_a_part_is_worth_what_the_score_loses_without_it() -> None:
    model, ids = small(), votive.tensor([[5, 6, 1, 8, 9]])
    found = circuits.qk_attribution(model, ids, 2, 3, query=4, key=1)
    w = glass.weights(model)
    held = ["layers.2.ln1.scale", "layers.2.attn.k", "layers.1.mlp_out", "layers.2.attn.scores", "layers.2.resid_pre"]
    with votive.no_grad(), glass.capture(model, held) as seen:
        model(ids)
    changed = seen["layers.2.resid_pre"][0, 4] - seen["layers.1.mlp_out"][0, 4]
    scale = seen["layers.2.ln1.scale"][0, 4]
    norm = w._norms(2)[0]
    q = (changed / scale * norm.weight.detach()) @ w.W_Q[2, 3]
    k = (seen["layers.2.attn.k"][0, 1, w.key_head(2, 3)]).detach()
    q, k = (_rotated(w._rotary(2), x.unsqueeze(0), t)[0] for x, t in ((q, 4), (k, 1)))
    expected = float(seen["layers.2.attn.scores"][0, 3, 4, 1] - (q * k).sum() / 2)
    assert float(found.sel(**{"query part": "layers.1.mlp"}).values.sum()) == pytest.approx(expected, abs=1e-5)


def test_features_of_coders_are_parts() -> None:
    model, ids = small(), votive.tensor([[5, 6, 1, 8, 9]])
    whole = circuits.qk_attribution(model, ids, 2, 1, key=2)
    for more in ({}, {"skip": True}):
        split = circuits.qk_attribution(model, ids, 2, 1, key=2, coders=[coder(1, **more)])
        names = split.dims["query part"]
        own = [n for n in names if n.startswith(("layers.1.feature", "layers.1.error"))]
        assert len(own) > 1
        assert votive.allclose(split.values.sum(), whole.values.sum(), atol=1e-5)
        a = whole.sel(**{"query part": ["layers.0.head.2"]}).values.sum()
        assert votive.allclose(split.sel(**{"query part": ["layers.0.head.2"]}).values.sum(), a, atol=1e-5)


def test_what_is_no_sum_is_refused() -> None:
    ids = votive.tensor([[5, 6, 1, 8, 9]])
    with pytest.raises(LookupError, match="all heads"):
        circuits.qk_attribution(decoder("olmo2")[0].eval(), ids, 1, 0, key=1)
    with pytest.raises(LookupError, match="two steps"):
        circuits.qk_attribution(decoder("minicpm3")[0].eval(), ids, 1, 0, key=1)
    with pytest.raises(ValueError, match="norms of the stream"):
        circuits.qk_attribution(decoder("openai-gpt")[0].eval(), ids, 1, 0, key=1)
    model = small()
    with pytest.raises(IndexError, match="layer 3"):
        circuits.qk_attribution(model, ids, 3, 0, key=1)
    with pytest.raises(IndexError, match="key 5"):
        circuits.qk_attribution(model, ids, 1, 0, key=5)
    with pytest.raises(IndexError, match="head 4"):
        circuits.qk_attribution(model, ids, 1, 4, key=1)
