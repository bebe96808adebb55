"""Learning vectors from pairs: the loss by its definition, who is a negative, what is learned, written and resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from tests.train import tuned
from votive.models import AutoModelForTextEncoding, SentenceEncoder
from votive.train import EmbedRecipe, embed, ranking_loss
from votive.train.embedding import Method
from votive.train.examples import Example

NUMBERS = ["one", "two", "three", "yes", "no", "cat", "dog", "king"]
PAIRS = [{"anchor": f"the {word}", "positive": f"{word} {i}"} for i, word in enumerate(NUMBERS)]
PLAN: dict[str, Any] = {"batch_size": 4, "held_out": 0.0, "progress": False, "lr": 5e-3}


def encoder(**more: Any) -> SentenceEncoder:
    votive.manual_seed(0)
    tok = tuned.tokenizer()
    config = votive.models.BertConfig(
        vocab_size=len(tok), hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        hidden_dropout_prob=0.1, initializer_range=0.2, max_position_embeddings=64,
    )  # fmt: skip
    return SentenceEncoder(votive.models.BertModel(config), tok, **more)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    encoder(normalize=True, max_length=32).save_pretrained(folder)
    return folder


@pytest.mark.parity
@pytest.mark.parametrize("symmetric", [False, True])
def test_the_loss_and_gradients_are_those_of_the_definition_in_torch(symmetric: bool) -> None:
    torch = pytest.importorskip("torch")
    votive.manual_seed(0)
    a, c = votive.randn(3, 5).requires_grad_(), votive.randn(7, 5).requires_grad_()
    excluded = votive.zeros(3, 7) > 0
    excluded[1, 2] = excluded[0, 6] = True
    loss = ranking_loss(a, c, temperature=0.1, symmetric=symmetric, excluded=excluded)
    loss.backward()
    x, y = (torch.from_numpy(t.detach().numpy()).requires_grad_() for t in (a, c))
    scores = torch.nn.functional.cosine_similarity(x[:, None], y[None], dim=-1) / 0.1
    scores = scores.masked_fill(torch.from_numpy(excluded.numpy()), -torch.inf)
    wanted = -scores.log_softmax(1).diagonal().mean()
    if symmetric:
        wanted = (wanted - scores[:, :3].log_softmax(0).diagonal().mean()) / 2
    wanted.backward()
    assert loss.item() == pytest.approx(wanted.item(), abs=1e-6)
    np.testing.assert_allclose(a.grad.numpy(), x.grad.numpy(), atol=1e-5)
    np.testing.assert_allclose(c.grad.numpy(), y.grad.numpy(), atol=1e-5)


def test_equal_texts_are_no_negatives() -> None:
    method = Method(EmbedRecipe(model="x"), encoder())
    rows = [
        {"anchor": "a", "positive": "p"},
        {"anchor": "b", "positive": "p", "negative": ["a", "n"]},
        {"anchor": "c", "positive": "q", "negative": "b"},
    ]
    batch = method.collate(method.pairs([Example("", row) for row in rows]))
    # Candidates: p, p, q, then a, n, b.
    assert batch["excluded"].long().tolist() == [[0, 1, 0, 1, 0, 0], [1, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0]]
    assert batch["ids"].shape[0] == 6
    assert batch["anchor_ids"].shape[0] == 3


@pytest.mark.parametrize("include_prompt", [True, False])
def test_texts_are_seen_as_they_are_encoded(include_prompt: bool) -> None:
    prompts = {"q": "Two KINGS "}
    one = encoder(prompts=prompts, default_prompt="q", lower_case=True, include_prompt=include_prompt, max_length=9)
    method = Method(EmbedRecipe(model="x"), one)
    rows = [{"anchor": "The Cat", "positive": "a Dog ran to the mat and the king"}, {"anchor": "no", "positive": "YES"}]
    anchors, candidates = method._vectors(one, method.collate(method.pairs([Example("", row) for row in rows])))
    for found, side in ((anchors, "anchor"), (candidates, "positive")):
        np.testing.assert_allclose(found.detach().numpy(), one.encode([row[side] for row in rows]).numpy(), atol=1e-5)


@pytest.mark.parametrize("lora", [None, 4])
def test_pairs_find_each_other_in_what_is_written(base: Path, tmp_path: Path, lora: int | None) -> None:
    more = {**PLAN, "lora": lora, "lr": 2e-2 if lora else 5e-3}
    made = embed(PAIRS, base, tmp_path / "out", eval_data=PAIRS, max_steps=60, **more)
    assert made.metrics["accuracy"] >= (0.8 if lora else 1.0)  # at first 0.125
    assert made.metrics["loss"] < made.history["loss"][0] / 2
    again = SentenceEncoder.from_pretrained(tmp_path / "out")
    assert again.normalize
    assert again.max_length == 32
    a, b = (again.encode([row[side] for row in PAIRS]) for side in ("anchor", "positive"))
    if lora is None:
        assert again.similarity(a, b).argmax(1).tolist() == list(range(8))
    assert float((a - made.model.encode([row["anchor"] for row in PAIRS])).abs().max()) < 1e-5
    assert (tmp_path / "out" / "adapter_model.safetensors").is_file() == (lora is not None)


@pytest.mark.parametrize("lora", [None, 2])
def test_a_run_that_was_stopped_ends_the_same(base: Path, tmp_path: Path, lora: int | None) -> None:
    plan = {**PLAN, "batch_size": 3, "accumulate": 2, "max_steps": 5, "checkpoint_every": 1, "lora": lora}
    whole = embed(PAIRS, base, tmp_path / "whole", **plan)
    embed(PAIRS, base, tmp_path / "parts", callbacks=[lambda t: t.stop() if t.step == 3 else None], **plan)
    again = embed(PAIRS, base, tmp_path / "parts", resume=True, **plan)
    assert again.history.columns == whole.history.columns
    name = "adapter_model.safetensors" if lora else "model.safetensors"
    assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()


def test_what_is_written_keeps_dense_layers_poolings_and_types(tmp_path: Path) -> None:
    from votive import nn

    dense = [nn.Sequential(nn.Linear(32, 6), nn.Tanh()), nn.Sequential(nn.Linear(6, 3, bias=False), nn.Identity())]
    one = encoder(dense=dense, pooling=["cls_token", "mean_tokens"], prompts={"q": "find: "}, default_prompt="q")
    made = embed(PAIRS, one, tmp_path, max_steps=1, save_dtype="bfloat16", **PLAN)
    again = SentenceEncoder.from_pretrained(tmp_path, dtype="float32")
    assert float((again.encode("the cat") - made.model.encode("the cat")).abs().max()) < 2e-2
    assert AutoModelForTextEncoding.from_pretrained(tmp_path).dtype is votive.bfloat16
    assert one.model.dtype is votive.float32
    assert again.pooling == ["cls_token", "mean_tokens"]
    assert again.prompts == {"q": "find: "}
    one.pool_by(["mean_tokens", "cls_token"])
    with pytest.raises(ValueError, match="joins poolings in the order"):
        one.save_pretrained(tmp_path)


@pytest.mark.parity
def test_sentence_transformers_reads_what_is_written(tmp_path: Path) -> None:
    theirs = pytest.importorskip("sentence_transformers")
    one = encoder(normalize=True)
    one.save_pretrained(tmp_path)
    found = theirs.SentenceTransformer(str(tmp_path), device="cpu").encode(["the cat", "a dog ran"])
    assert float((one.encode(["the cat", "a dog ran"]) - votive.tensor(found)).abs().max()) < 1e-5


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"anchor": "x"}, r'needs "anchor" and "positive"; it has \'anchor\''),
        ({"anchor": "x", "positive": 3}, '"positive" must be a text, got 3'),
        ({"anchor": "x", "positive": "y", "negative": [1]}, '"negative" must be a text or a list of texts'),
        ({"anchor": "x", "positive": "yes no " * 40}, "has a text of [0-9]+ tokens, more than 16"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(values: dict[str, Any], says: str) -> None:
    method = Method(EmbedRecipe(model="x", truncation="error", context=16), encoder())
    with pytest.raises(ValueError, match=r"data\.jsonl:3: " + says):
        method.pairs([Example("data.jsonl:3", values)])


def test_settings_that_do_not_go_are_told(base: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="truncation is one of keep_start, drop, error"):
        EmbedRecipe(model="x", truncation="keep_end")
    with pytest.raises(ValueError, match="chat_template is for chats"):
        EmbedRecipe(model="x", chat_template="t")
    with pytest.raises(ValueError, match="unknown pooling"):
        embed(PAIRS, base, tmp_path / "out", pooling="mean", **PLAN)
    with pytest.raises(ValueError, match="nothing to be told apart from"):
        embed(PAIRS[:1], base, tmp_path / "one", **PLAN)
    with pytest.warns(UserWarning, match="hold out more"):
        made = embed(PAIRS, base, tmp_path / "few", eval_data=PAIRS[:1], max_steps=1, **PLAN)
    assert made.metrics == {}


def test_a_decoder_becomes_an_encoder(tmp_path: Path) -> None:
    tok = tuned.tokenizer()
    folder = tuned.folder(tmp_path / "decoder", tuned.decoder(tok), tok)
    made = embed(PAIRS, folder, tmp_path / "out", pooling="lasttoken", eval_data=PAIRS, max_steps=40, **PLAN)
    assert made.metrics["accuracy"] >= 0.8
    again = SentenceEncoder.from_pretrained(tmp_path / "out")
    assert again.pooling == ["lasttoken"]
    assert float((again.encode("the cat") - made.model.encode("the cat")).abs().max()) < 1e-5
