"""Sessions, watch, profile and lockstep work on every model of the package, and on a user's own."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import votive
from votive import glass, nn
from votive.models import auto

from .session_models import fresh
from .test_models import DISTINCT, FAMILIES, made

# What `made` gives of a family that also has an encoder has one.
CAUSAL = [f for f in FAMILIES if "causal" in auto._family(f)[1] and "seq2seq" not in auto._family(f)[1]]
# Decoders that are told of pictures write texts; sessions are tried with those alone.
OTHER = [f for f in FAMILIES if f not in CAUSAL and "image_text" not in auto._family(f)[1]]
# Elsewhere a session takes as long as with a decoder of the same parts.
EXACT = [f for f in CAUSAL if f in DISTINCT]


def layer(model: Any) -> str:
    """The first MLP of a model, or what stands in its place."""
    ends = ("mlp", "mlp_block", "moe", "feed_forward", "fc2", "ffn", "mixer.out_proj", "mixer.down_proj")
    names = [n for n, _ in model.named_modules() if n.endswith(ends)]
    return f"^{names[0]}"


@pytest.mark.parametrize("dtype", [votive.float32, votive.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("family", EXACT)
def test_a_session_is_exact_with_every_language_model(family: str, dtype: Any) -> None:
    model = made(family)[0].to(dtype)
    session = glass.Session(model, None, [5, 6, 7, 8, 9], do_sample=True, seed=2, block=2)
    session.step(3)
    session.branch(1)
    session.step(2)
    session.set_edits([glass.Edit(layer(model), "zero")])
    session.step(2)
    session.set_edits([glass.Edit(layer(model), "scale", 0.5, positions=[3])], from_start=True)
    session.step()
    for node in session.nodes:
        assert votive.equal(node.logits, fresh(node, 2)), node
    assert session.replay().exact


@pytest.mark.parametrize("family", OTHER)
def test_a_model_that_writes_no_text_is_refused(family: str) -> None:
    model, _ = made(family)
    with pytest.raises(TypeError, match=r"this one has an encoder|cannot write token by token"):
        glass.Session(model, None, [5, 6])


class Counting(nn.Module):
    """A language model of one's own, of the plainest kind: attention over an embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(13, 8)
        self.mixed = nn.Linear(8, 24)

    def forward(self, ids: Any, past_key_values: Any = None, use_cache: bool = False, logits_to_keep: int = 0) -> Any:
        q, k, v = self.mixed(self.table(ids)).unsqueeze(1).chunk(3, -1)
        if past_key_values is not None:
            k, v = past_key_values.update(k, v)
        rows, columns = q.shape[2], k.shape[2]
        seen = votive.ones(rows, columns, dtype=votive.bool).tril(columns - rows)
        y = nn.functional.scaled_dot_product_attention(q, k, v, seen).squeeze(1)
        logits = (y @ self.table.weight.t())[:, -logits_to_keep:]
        return votive.models.CausalLMOutput(logits=logits)


def test_a_session_writes_with_a_users_own_module() -> None:
    session = glass.Session(Counting().eval(), None, [1, 2, 3], do_sample=True, block=2)
    session.step(4)
    session.jump(2)
    session.branch()
    session.step(3)
    session.set_edits([glass.Edit("mixed", "scale", 0.5)])
    session.step(2)
    for node in session.nodes:
        assert votive.equal(node.logits, fresh(node, 2))


class Forgetful(Counting):
    """Ignores its cache."""

    def forward(self, ids: Any, past_key_values: Any = None, **given: Any) -> Any:
        return super().forward(ids, None, **given)


def test_a_model_that_does_not_keep_its_cache_is_told() -> None:
    session = glass.Session(Forgetful().eval(), None, [1, 2, 3])
    with pytest.raises(TypeError, match="must take past_key_values and add to it"):
        session.step()


@pytest.mark.parametrize("family", DISTINCT)
def test_watch_profile_and_lockstep_work_on_every_model(family: str) -> None:
    model, given = made(family)
    with votive.no_grad(), glass.watch(model) as seen:
        model(**given)
    assert seen.checked > 10
    costs = glass.profile(model, **given, repeat=1).costs
    assert {c.kind for c in costs} == {"module", "op"}
    with votive.no_grad(), glass.lockstep(model, copy.deepcopy(model), ops=True, **given) as found:
        assert found.agrees
        assert not found.unmatched
        assert len(found.rows) > 20
