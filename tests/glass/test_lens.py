"""The logit lens and the tuned lens: they say what the model's own end says, row by row."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import votive
from tests import tiny_sizes
from votive import glass, nn
from votive.glass import lens as lens_file
from votive.glass.residual_stream import Unembed, logits_of, run_stream
from votive.nn import functional as F

from .decoders import ALL, decoder


def states(model: Any, ids: Any) -> list[Any]:
    """The input of the first layer and the outputs of all, by plain hooks."""
    found: list[Any] = []
    layers = glass.find_parts(model).layers

    def first(m: Any, args: Any) -> None:
        found.append(args[0])

    def each(m: Any, args: Any, out: Any) -> None:
        found.append(out[0] if isinstance(out, tuple) else out)

    handles = [layers[0].register_forward_pre_hook(first)]
    handles += [layer.register_forward_hook(each) for layer in layers]
    with votive.no_grad():
        model(ids)
    for h in handles:
        h.remove()
    return found


@pytest.mark.parametrize("name", ALL)
def test_the_last_row_is_what_the_model_says(name: str) -> None:
    model, ids = decoder(name)
    found = glass.logit_lens(model, ids, top_k=4, target=7)
    with votive.no_grad():
        logits = logits_of(model(ids)).float()
    chances = F.softmax(logits, -1)
    top, which = F.log_softmax(logits, -1).exp().topk(4, -1)
    assert votive.equal(found.ids[-1], which)
    assert votive.equal(found.probabilities[-1], top)
    assert votive.equal(found.kl[-1], votive.zeros(2, 5))
    assert votive.allclose(found.probability[-1], chances[..., 7])
    assert votive.equal(found.rank[-1], (logits > logits[..., 7:8]).sum(-1))
    assert votive.allclose(found.entropy[-1], -(chances * chances.log()).sum(-1), atol=1e-5)


@pytest.mark.parametrize("name", ALL)
def test_rows_before_are_read_with_the_models_own_end(name: str) -> None:
    model, ids = decoder(name)
    found = glass.logit_lens(model, ids, top_k=3)
    assert len(found.names) == len(glass.find_parts(model).layers) + 1
    end = _end(name, model)
    with votive.no_grad():
        final = F.log_softmax(logits_of(model(ids)).float(), -1)
        for row, state in enumerate(states(model, ids)[:-1]):
            logs = F.log_softmax(end(state).float(), -1)
            assert votive.allclose(found.probabilities[row], logs.exp().topk(3, -1)[0], atol=1e-5)
            kl = (final.exp() * (final - logs)).sum(-1)
            assert votive.allclose(found.kl[row], kl, atol=1e-5)
            assert float(kl.max()) > 1e-3, "the row says what the last one says"


def _end(name: str, model: Any) -> Any:
    if name == "mine":
        return lambda h: model.end(h) @ model.tokens.weight.t()
    if name == "gpt2":
        return lambda h: model.lm_head(model.transformer.ln_f(h))
    cap = getattr(model.config, "final_logit_softcapping", None)
    if cap:
        return lambda h: cap * votive.tanh(model.lm_head(model.model.norm(h)) / cap)
    return lambda h: model.lm_head(model.model.norm(h))


def test_scores_of_the_whole_vocabulary_exist_for_a_few_rows_only(monkeypatch: pytest.MonkeyPatch) -> None:
    model, ids = decoder("qwen3")
    whole = glass.logit_lens(model, ids, target=3)
    monkeypatch.setattr(lens_file, "CHUNK", 61 * 3)
    largest = 0
    plain = Unembed.__call__

    def measured(self: Unembed, state: Any) -> Any:
        nonlocal largest
        out = plain(self, state)
        largest = max(largest, out.numel())
        return out

    monkeypatch.setattr(Unembed, "__call__", measured)
    pieces = glass.logit_lens(model, ids, target=3)
    assert 0 < largest <= 61 * 3
    assert votive.equal(whole.ids, pieces.ids)
    assert votive.allclose(whole.kl, pieces.kl, atol=1e-6)


def test_the_last_row_is_not_computed_a_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model, ids = decoder("llama")
    calls = []
    plain = Unembed.__call__

    def counted(self: Unembed, state: Any) -> Any:
        calls.append(tuple(state.shape))
        return plain(self, state)

    monkeypatch.setattr(Unembed, "__call__", counted)
    glass.logit_lens(model, ids, layers=-1)
    assert calls == [(1, 1, 16)]  # the check that the end is understood


def test_layers_and_positions_choose_rows_and_columns() -> None:
    model, ids = decoder("llama")
    whole = glass.logit_lens(model, ids, target=votive.tensor([3, 4]))
    part = glass.logit_lens(model, ids, target=votive.tensor([3, 4]), layers=["embedding", -1], positions=[-1, 0])
    assert part.names == ["embedding", "model.layers.1"]
    assert part.positions == [4, 0]
    assert votive.allclose(part.probability, whole.probability[[0, 2]][:, :, [4, 0]])
    assert part.tokens.tolist() == [[9, 5], [8, 9]]
    with pytest.raises(IndexError, match="layer 2"):
        glass.logit_lens(model, ids, layers=2)
    with pytest.raises(IndexError, match="positions"):
        glass.logit_lens(model, ids, positions=5)
    with pytest.raises(ValueError, match="target"):
        glass.logit_lens(model, ids, target=[1, 2, 3])


def test_a_target_may_be_given_for_each_position() -> None:
    model, ids = decoder("llama")
    next_ids = votive.cat([ids[:, 1:], ids[:, :1]], 1)
    found = glass.logit_lens(model, ids, target=next_ids)
    with votive.no_grad():
        chances = F.softmax(model(ids).logits, -1)
    assert votive.allclose(found.probability[-1], chances.gather(-1, next_ids[..., None])[..., 0])


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma2"])
def test_a_cache_holds_the_beginning_of_the_text(name: str) -> None:
    model, ids = decoder(name)
    whole = glass.logit_lens(model, ids, target=3)
    cache = nn.DynamicCache()
    with votive.no_grad():
        model(ids[:, :3], past_key_values=cache)
    rest = glass.logit_lens(model, ids[:, 3:], past_key_values=cache, target=3)
    assert rest.positions == [3, 4]
    cache.crop(3)
    one = glass.logit_lens(model, ids[:, 3:], past_key_values=cache, target=3, positions=[4])
    assert votive.equal(one.probability, rest.probability[:, :, 1:])
    cache.crop(3)
    with pytest.raises(IndexError, match=r"3\.\.4"):
        glass.logit_lens(model, ids[:, 3:], past_key_values=cache, positions=[1])
    assert cache.get_seq_length() == 5
    assert votive.allclose(rest.probability, whole.probability[:, :, 3:], atol=1e-5)


def test_padding_and_other_arguments_are_the_models() -> None:
    model, ids = decoder("qwen2")
    mask = votive.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    found = glass.logit_lens(model, ids, attention_mask=mask, target=3)
    with votive.no_grad():
        chances = F.softmax(model(ids, attention_mask=mask).logits, -1)
    assert votive.allclose(found.probability[-1], chances[..., 3])
    with pytest.raises(ValueError, match="logits_to_keep"):
        glass.logit_lens(model, ids, logits_to_keep=1)


def test_a_model_without_layers_is_told_what_to_say() -> None:
    with pytest.raises(LookupError, match=r"layers='blocks\.\*'"):
        glass.logit_lens(nn.Linear(2, 2), votive.ones(1, 1, 2))


def test_parts_may_be_named_or_told_by_the_model() -> None:
    model, ids = decoder("mine")
    plain = glass.logit_lens(model, ids)
    with pytest.raises(ValueError, match="name the layers"):
        glass.logit_lens(model, ids, parts={"layers": ["blocks.0"]})
    last = glass.logit_lens(model, ids, parts={"layers": ["blocks.1"]})
    assert last.names == ["embedding", "blocks.1"]
    assert votive.allclose(last.kl, plain.kl[1:], atol=1e-6)
    named = glass.logit_lens(model, ids, parts={"layers": "blocks.*", "norm": "end"})
    assert votive.equal(named.ids, plain.ids)

    class Told(type(model)):  # type: ignore[misc]
        def glass_parts(self) -> dict[str, Any]:
            return {"layers": [self.blocks[1]], "norm": "end"}

    model.__class__ = Told
    assert glass.find_parts(model).names == ("blocks.1",)
    assert glass.find_parts(model, layers="blocks").names == ("blocks.0", "blocks.1")
    with pytest.raises(glass.NoMatch, match="blocks"):
        glass.find_parts(model, layers="block.*")


@pytest.mark.parametrize("name", ALL)
def test_parts_are_found_by_what_they_look_like(name: str) -> None:
    model, _ = decoder(name)
    found = glass.find_parts(model).named()
    if name == "mine":
        wanted = (("blocks.0", "blocks.1"), "end", None, "tokens")
    elif name == "gpt2":
        layers = ("transformer.h.0", "transformer.h.1")
        wanted = (layers, "transformer.ln_f", "lm_head", "transformer.wte")
    else:
        layers = ("model.layers.0", "model.layers.1")
        wanted = (layers, "model.norm", "lm_head", "model.embed_tokens")
    assert tuple(found.values()) == wanted


def test_a_table_shows_tokens_and_a_dict_plain_numbers() -> None:
    model, ids = decoder("llama")
    words = [f" w{i}" for i in range(61)]
    found = glass.logit_lens(model, ids, tokenizer=words, target=3)
    lines = str(found).splitlines()
    assert lines[0].split() == ["·w5", "·w6", "·w7", "·w8", "·w9"]
    assert lines[-1].split()[0] == "model.layers.1"
    assert lines[-1].split()[1] == f"·w{int(found.ids[-1, 0, 0, 0])}"
    result = found.to_dict()
    assert result["rank"] == found.rank.tolist()
    assert math.isclose(result["kl"][0][0][0], float(found.kl[0, 0, 0]))


def test_nothing_stays_attached_and_no_graph_is_kept() -> None:
    model, ids = decoder("llama")
    found = glass.logit_lens(model, ids)
    assert not found.probabilities.requires_grad
    assert not any(m._forward_hooks for m in model.modules())


@pytest.mark.parametrize("site", ["layers.0", "layers.0.mlp", "layers.1"])
def test_a_lens_sees_what_patches_made(site: str) -> None:
    model, ids = decoder("llama")
    with glass.patch(model, [glass.Edit(site, "scale", 3.0)]):
        found = glass.logit_lens(model, ids, target=3)
        with votive.no_grad():
            states = model(ids, output_hidden_states=True).hidden_states
            logits = model(ids).logits
            wanted = [F.softmax(model.lm_head(model.model.norm(h)), -1) for h in states[:2]]
    for row in range(2):
        assert votive.allclose(found.probability[row], wanted[row][..., 3], atol=1e-6)
    assert votive.allclose(found.probability[2], F.softmax(logits, -1)[..., 3], atol=1e-6)


@pytest.mark.parametrize("dtype", [votive.bfloat16, votive.float64])
def test_other_precisions_have_lenses(dtype: Any) -> None:
    model, ids = decoder("qwen3")
    model.to(dtype)
    found = glass.logit_lens(model, ids, target=3)
    with votive.no_grad():
        chances = F.softmax(model(ids).logits.float(), -1)
    assert votive.allclose(found.probability[-1], chances[..., 3], atol=1e-6)


# --- the tuned lens -------------------------------------------------------------------------------


def trained() -> tuple[Any, Any]:
    """A small model that has learned to count, and texts of counting."""
    config = votive.models.LlamaConfig(
        **tiny_sizes.transformer(16, 32, layers=3, heads=2, vocab=16), initializer_range=0.2
    )
    votive.manual_seed(0)
    model = votive.models.LlamaForCausalLM(config)
    g = votive.Generator().manual_seed(2)
    start = votive.randint(0, 16, (16, 1), generator=g)
    step = votive.randint(1, 4, (16, 1), generator=g)
    ids = (start + step * votive.arange(8)) % 16
    optimizer = votive.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        model(ids, labels=ids).loss.backward()
        optimizer.step()
    return model.eval(), ids


def test_a_tuned_lens_is_nearer_to_the_end_than_the_plain_one(tmp_path: Path) -> None:
    model, ids = trained()
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    lens = glass.train_tuned_lens(model, [ids[:6], ids[6:12]], epochs=60, lr=1e-2)
    held = ids[12:]
    plain = glass.logit_lens(model, held)
    tuned = glass.logit_lens(model, held, translator=lens)
    gain = tuned.kl[:-1].mean((1, 2)) / plain.kl[:-1].mean((1, 2))
    assert float(gain.max()) < 0.7, gain.tolist()
    assert votive.equal(tuned.ids[-1], plain.ids[-1])
    assert lens.history[-1] < lens.history[0]
    for name, p in model.named_parameters():
        assert votive.equal(p, before[name])
        assert p.grad is None or not bool((p.grad != p.grad).any())
        assert p.requires_grad
    lens.save(tmp_path / "lens.vt")
    again = glass.TunedLens.load(tmp_path / "lens.vt")
    assert votive.equal(glass.logit_lens(model, held, translator=again).kl, tuned.kl)
    assert again.history == lens.history


def test_a_new_tuned_lens_is_the_plain_lens() -> None:
    model, ids = decoder("llama")
    lens = glass.TunedLens(rows=2, width=16)
    plain, tuned = (glass.logit_lens(model, ids, translator=t) for t in (None, lens))
    assert votive.equal(plain.kl, tuned.kl)


def test_a_tuned_lens_of_another_model_is_refused(tmp_path: Path) -> None:
    model, ids = decoder("llama")
    with pytest.raises(ValueError, match="another model"):
        glass.logit_lens(model, ids, translator=glass.TunedLens(rows=1, width=8))
    votive.save({"a": 1}, tmp_path / "x.vt")
    with pytest.raises(ValueError, match="no tuned lens"):
        glass.TunedLens.load(tmp_path / "x.vt")


def test_texts_need_a_tokenizer_and_batches_may_be_arguments() -> None:
    model, ids = decoder("llama")

    class Letters:
        def encode(self, text: str) -> list[int]:
            return [ord(c) - 60 for c in text]

    lens = glass.train_tuned_lens(model, ["HELLO"], tokenizer=Letters())
    assert len(lens.history) == 1
    more = glass.train_tuned_lens(model, [{"input_ids": ids}], lens=lens, epochs=2)
    assert more is lens
    assert len(lens.history) == 3
    with pytest.raises(ValueError, match="tokenizer"):
        glass.train_tuned_lens(model, ["HELLO"])
    with pytest.raises(ValueError, match="no batch"):
        glass.train_tuned_lens(model, [])


def test_what_follows_the_layers_must_look_at_each_position_alone() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = layer(x)
            return x.cumsum(1)

    votive.manual_seed(0)
    with pytest.raises(ValueError, match="layers skipped"):
        glass.logit_lens(Mixed(), votive.randn(2, 3, 4))
    stream = run_stream(glass.find_parts(Mixed()), (votive.randn(2, 3, 4),), {})
    assert stream.names == ["embedding", "layers.0", "layers.1"]
