"""No edit lets a position know of later ones, and a text fed in parts is what it is as a whole."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import votive
from votive import glass, nn
from votive.glass import Edit

from .decoders import ALL, CAUSAL, decoder

LENGTH = 6
# Each edit as a function of an address and the shape of one sample's value there.
Make = Callable[[str, tuple[int, ...], Any, Any], list[Edit]]


def noise(*shape: int) -> Any:
    return votive.randn(*shape, generator=votive.Generator().manual_seed(7))


def by_text(shape: tuple[int, ...]) -> Any:
    """A value that differs at every position and feature, for all samples."""
    return noise(1, *shape)


KINDS: dict[str, Make] = {
    "zero": lambda at, shape, m, ids: [Edit(at, "zero")],
    "zero at positions": lambda at, shape, m, ids: [Edit(at, "zero", positions=[1, 4])],
    "zero of features": lambda at, shape, m, ids: [Edit(at, "zero", features=[0, 2])],
    "zero of samples": lambda at, shape, m, ids: [Edit(at, "zero", samples=[1])],
    "zero of parts": lambda at, shape, m, ids: [Edit(at, "zero", positions=[0, 3], features=[1], samples=[0])],
    "scale": lambda at, shape, m, ids: [Edit(at, "scale", 3.0, positions=[2])],
    "add": lambda at, shape, m, ids: [Edit(at, "add", noise(shape[-1]))],
    "add by position": lambda at, shape, m, ids: [Edit(at, "add", by_text(shape))],
    "replace": lambda at, shape, m, ids: [Edit(at, "replace", 0.5, positions=[2, 5])],
    "replace by position": lambda at, shape, m, ids: [Edit(at, "replace", by_text(shape))],
    "call": lambda at, shape, m, ids: [Edit(at, "call", lambda v: v.square())],
    "mean": lambda at, shape, m, ids: [Edit(at, "mean")],
    "mean at positions": lambda at, shape, m, ids: [Edit(at, "mean", positions=[1, 3])],
    "mean of data": lambda at, shape, m, ids: glass.means(m, at, [ids[:, [3, 1, 4, 0, 5, 2]]]),
    "mean of data, one for all": lambda at, shape, m, ids: glass.means(m, at, [ids, ids[:, :3]], over="positions"),
    "resample": lambda at, shape, m, ids: [Edit(at, "resample")],
    "resample at positions": lambda at, shape, m, ids: [Edit(at, "resample", positions=[0, 4])],
}
# What stands in models of all families, if by several names; the first hit of each is edited.
SITES = [
    r"(.*\.)?(embed_tokens|wte|tokens)",
    r"(.*\.)?(layers|h|blocks)\.0",
    r"(.*\.)?(layers|h|blocks)\.0\.(self_attn|attn|look)",
    r"(.*\.)?(layers|h|blocks)\.0\.(mlp|block_sparse_moe|down)",
    r"(.*\.)?(layers|h|blocks)\.1\.(input_layernorm|ln_1|one)",
    r"(.*\.)?(layers|h)\.0\..*(q_norm)",
    r"(.*\.)?(layers|h)\.0\..*(mlp|moe)\.gate",
    r"lm_head",
    r".*(layers|h|blocks)\.0\..*/(attention|softmax)#0",
    r"(?!.*expert).*\.0(\..*)?/(silu|gelu|relu)#0",
]


@cache
def known(name: str) -> tuple[Any, Any]:
    model, _ = decoder(name)
    return model, votive.tensor([[5, 6, 7, 8, 9, 3], [9, 8, 5, 11, 8, 4]])


# What these put into the weights of attention is also put where a later position stands.
NOT_OF_WEIGHTS = {k for k in KINDS if k.startswith(("add", "replace")) or "data" in k} | {
    "zero of features",
    "zero of parts",
}


def sites(name: str, kind: str) -> dict[str, tuple[int, ...]]:
    """Addresses at which an edit makes sense."""
    found = all_sites(name)
    return {a: s for a, s in found.items() if "softmax" not in a or kind not in NOT_OF_WEIGHTS}


@cache
def all_sites(name: str) -> dict[str, tuple[int, ...]]:
    """Addresses to edit, and the shape of one sample's value there."""
    model, ids = known(name)
    with votive.no_grad(), glass.capture(model, ["**", "/**"], policy="copy") as seen:
        model(ids)
    found: dict[str, tuple[int, ...]] = {}
    for site in SITES:
        at = next((a for a in seen if re.fullmatch(site, a)), None)
        if at is None:
            continue
        value = glass.values.first(seen[at])
        shape = tuple(value.shape)
        found[f"^{at}"] = (LENGTH, *shape[1:]) if shape[0] != 2 else shape[1:]
    return found


def logits(out: Any) -> Any:
    return out if isinstance(out, votive.Tensor) else out.logits


def cases(names: list[str]) -> list[Any]:
    return [pytest.param(n, k, id=f"{n}-{k}") for n in names for k in KINDS]


@pytest.mark.parametrize(("name", "kind"), cases(ALL))
def test_after_an_edit_a_position_depends_on_no_later_token(name: str, kind: str) -> None:
    model, ids = known(name)
    later = ids.clone()
    later[:, 3:] = votive.tensor([[21, 22, 23], [24, 25, 26]])
    with votive.no_grad():
        plain = logits(model(ids))
        assert not votive.allclose(plain[:, 3:], logits(model(later))[:, 3:], atol=1e-2)
        for at, shape in sites(name, kind).items():
            edits = KINDS[kind](at, shape, model, ids)
            with glass.patch(model, edits) as receipt:
                one, other = logits(model(ids)), logits(model(later))
            assert receipt.fired == 2, at
            assert votive.allclose(one[:, :3], other[:, :3], atol=1e-5), at
            assert not votive.allclose(one, plain, atol=1e-6), f"{at}: the edit changes nothing"


@pytest.mark.parametrize(("name", "kind"), cases(CAUSAL))
def test_an_edit_means_the_same_with_a_cache(name: str, kind: str) -> None:
    model, ids = known(name)
    with votive.no_grad():
        for at, shape in sites(name, kind).items():
            edits = KINDS[kind](at, shape, model, ids)
            with glass.patch(model, edits):
                whole = logits(model(ids))
                kept = nn.DynamicCache()
                parts = [logits(model(ids[:, a:b], past_key_values=kept)) for a, b in ((0, 1), (1, 4), (4, 5), (5, 6))]
            assert votive.allclose(votive.cat(parts, 1), whole, atol=2e-5), at


CALLS = {
    "skip": lambda at, model: Edit(at, "skip"),
    "identity": lambda at, model: Edit(at, "swap", "identity"),
    "another": lambda at, model: Edit(at, "swap", at.removeprefix("^").replace(".0", ".1")),
}


@pytest.mark.parametrize("name", CAUSAL)
@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_is_not_made_leaves_positions_where_they_are(name: str, call: str) -> None:
    model, ids = known(name)
    later = ids.clone()
    later[:, 3:] = votive.tensor([[21, 22, 23], [24, 25, 26]])
    found = [a for a in all_sites(name) if re.search(r"\.0(\.(self_attn|attn|mlp|.*moe))?$", a)]
    assert len(found) == 3
    further = Edit(found[0].replace(".0", ".1"), "scale", -2.0, positions=[1, 4])
    for at in found:
        edits = [CALLS[call](at, model), further]
        with votive.no_grad(), glass.patch(model, edits):
            whole = logits(model(ids))
            assert votive.allclose(whole[:, :3], logits(model(later))[:, :3], atol=1e-5), at
            kept = nn.DynamicCache()
            parts = [logits(model(ids[:, a:b], past_key_values=kept)) for a, b in ((0, 3), (3, 4), (4, 6))]
        assert votive.allclose(votive.cat(parts, 1), whole, atol=2e-5), at


def test_a_module_that_fills_no_cache_is_refused_where_the_cache_counts() -> None:
    class Mute(nn.Module):
        def forward(self, x: Any, *args: Any, **kwargs: Any) -> Any:
            return x

    model, ids = known("gpt2")
    edit = Edit("h.0.attn", "swap", Mute())
    with votive.no_grad(), glass.patch(model, edit):
        logits(model(ids))
        with pytest.raises(RuntimeError, match="has put nothing into the cache"):
            model(ids, past_key_values=nn.DynamicCache())
