"""Learning from preferences: losses by their definitions, references, what is learned, what is resumed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import votive
from tests.train import tuned
from votive.models import AutoModelForCausalLM
from votive.train import DPORecipe, dpo, dpo_loss
from votive.train.examples import Example
from votive.train.preference import Method, loader, pair_of, pairs_of
from votive.train.reference import Reference, token_logps

PAIRS = [
    {"prompt": f"the {word}", "chosen": " yes" if i % 2 else " yes yes", "rejected": " no no no" if i % 3 else " no"}
    for i, word in enumerate(["cat", "dog", "king", "mat", "user", "one"])
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tok = tuned.tokenizer()
    return tuned.folder(tmp_path_factory.mktemp("base"), tuned.decoder(tok), tok)


@pytest.mark.parity
@pytest.mark.parametrize(("loss_type", "smoothing"), [("sigmoid", 0.0), ("sigmoid", 0.1), ("ipo", 0.0), ("hinge", 0.0)])
def test_losses_and_gradients_are_those_of_the_definitions_in_torch(
    base: Path, loss_type: str, smoothing: float
) -> None:
    torch = pytest.importorskip("torch")
    tok = votive.text.Tokenizer.from_pretrained(base)
    recipe = DPORecipe(model="x", beta=0.3, loss_type=loss_type, label_smoothing=smoothing, batch_size=6)
    model = AutoModelForCausalLM.from_pretrained(base)
    method = Method(recipe, Reference(model))
    for p in model.parameters():
        p.data.add_(0.02 * votive.randn(p.shape))
    (batch,) = loader(pairs_of([Example("", p) for p in PAIRS], tok, recipe), recipe, 0, False)
    batch = {**batch, "reference": method.referred(batch), "share": votive.tensor(1.0)}
    logits = model(batch["input_ids"], attention_mask=batch["attention_mask"], use_cache=False).logits
    before = method.reference.model(batch["input_ids"], attention_mask=batch["attention_mask"]).logits
    there = torch.from_numpy(logits.detach().numpy()).requires_grad_()
    labels = torch.from_numpy(batch["labels"].numpy())[:, 1:]

    def logps(x: Any) -> Any:
        each = x[:, :-1].log_softmax(-1).gather(2, labels.clamp(min=0).unsqueeze(2)).squeeze(2)
        each = each * (labels != -100)
        return each.sum(1) / (labels != -100).sum(1) if loss_type == "ipo" else each.sum(1)

    new, old = logps(there), logps(torch.from_numpy(before.detach().numpy()))
    h = (new[:6] - new[6:]) - (old[:6] - old[6:])
    if loss_type == "sigmoid":
        wanted = -torch.log(torch.sigmoid(0.3 * h)) * (1 - smoothing) - torch.log(torch.sigmoid(-0.3 * h)) * smoothing
    elif loss_type == "ipo":
        wanted = (h - 1 / 0.6) ** 2
    else:
        wanted = torch.clamp(1 - 0.3 * h, min=0)
    loss, values = method.step(model, batch)
    assert loss.item() == pytest.approx(wanted.mean().item(), abs=1e-5)
    assert values["margin"].item() == pytest.approx(0.3 * h.mean().item(), abs=1e-5)
    assert values["accuracy"].item() == pytest.approx((h > 0).float().mean().item())
    wanted.mean().backward()
    logits.retain_grad()
    (logits * votive.tensor(there.grad.numpy())).sum().backward()  # from torch's gradient of logits onwards
    grads = {n: p.grad.clone() for n, p in model.named_parameters()}
    model.zero_grad()
    loss.backward()
    for name, p in model.named_parameters():
        assert float((p.grad - grads[name]).abs().max()) < 1e-4, name


@pytest.mark.parametrize("settings", [{"lora": 4, "lr": 2e-2}, {"lr": 5e-3}, {"lr": 5e-3, "loss_type": "ipo"}])
def test_preferred_answers_become_likelier(base: Path, tmp_path: Path, settings: dict[str, Any]) -> None:
    made = dpo(PAIRS, base, tmp_path / "out", eval_data=PAIRS, max_steps=12, eval_every=12, progress=False, **settings)
    first = made.history["loss"][0]
    assert first == pytest.approx(25.0 if "loss_type" in settings else math.log(2), abs=1e-5)
    assert made.metrics["accuracy"] == 1.0
    assert made.metrics["margin"] > 0.05
    assert made.metrics["loss"] < first * 0.9


def test_the_reference_of_an_adapter_is_the_model_without_it(base: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(base)
    ids = votive.tensor([[5, 6, 7, 8]])
    batch = {"input_ids": ids, "labels": ids, "attention_mask": votive.ones_like(ids)}
    before = token_logps(model, batch)[0].detach()
    model.add_adapter(
        votive.models.LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False, lora_dropout=0.5)
    )
    model.train()
    reference = Reference(model, adapter=True)
    found = reference(lambda m: token_logps(m, batch)[0])
    assert float((found - before).abs().max()) < 1e-6
    assert model.training
    assert float((token_logps(model.eval(), batch)[0] - before).abs().max().detach()) > 1e-3


def test_without_a_reference_answers_are_compared_as_they_are(base: Path, tmp_path: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(base)
    tok = votive.text.Tokenizer.from_pretrained(base)
    losses = []
    for pair in PAIRS:
        rows = pair_of(Example("", pair), tok, 64, "error")
        assert rows is not None
        sums = []
        for row in rows:
            logps = model(votive.tensor([row.ids])).logits[0].log_softmax(-1).detach()
            sums.append(sum(logps[i - 1, t].item() for i, t in enumerate(row.ids) if row.learned[i]))
        losses.append(math.log1p(math.exp(-0.5 * (sums[0] - sums[1]))))
    plan: dict[str, Any] = {"batch_size": 2, "accumulate": 3, "max_steps": 1, "held_out": 0.0, "progress": False}
    made = dpo(PAIRS, base, tmp_path / "out", reference_free=True, beta=0.5, **plan)
    assert made.history["loss"][0] == pytest.approx(sum(losses) / len(losses), rel=1e-4)


def test_adapters_above_weights_in_blocks_have_these_for_a_reference(tmp_path: Path) -> None:
    from votive.cli import main

    tok = tuned.tokenizer()
    folder = tuned.folder(tmp_path / "base", tuned.decoder(tok, hidden_size=64, intermediate_size=64), tok)
    assert main(["quantize", str(folder), str(tmp_path / "base.gguf"), "--type", "q8_0", "--quiet"]) == 0
    plan: dict[str, Any] = {"max_steps": 8, "lr": 2e-2, "held_out": 0.0, "progress": False}
    made = dpo(PAIRS, tmp_path / "base.gguf", tmp_path / "out", lora=4, **plan)
    assert made.history["loss"][0] == pytest.approx(math.log(2), abs=1e-5)
    assert made.history["loss"][-1] < 0.5
    assert any(getattr(p, "blocks", None) is not None for p in made.model.parameters())
    more = dpo(PAIRS, tmp_path / "out", tmp_path / "more", **plan)  # the adapter goes on, its base stays in blocks
    assert more.history["loss"][0] == pytest.approx(math.log(2), abs=1e-5)
    assert any(getattr(p, "blocks", None) is not None for p in more.model.parameters())


@pytest.mark.parametrize("lora", [None, 2])
def test_a_run_that_was_stopped_ends_the_same(base: Path, tmp_path: Path, lora: int | None) -> None:
    plan: dict[str, Any] = {
        "lora": lora, "batch_size": 2, "accumulate": 2, "max_steps": 5, "checkpoint_every": 1, "lr": 1e-2,
        "held_out": 0.0, "progress": False,
    }  # fmt: skip
    whole = dpo(PAIRS, base, tmp_path / "whole", **plan)
    dpo(PAIRS, base, tmp_path / "parts", callbacks=[lambda t: t.stop() if t.step == 3 else None], **plan)
    again = dpo(PAIRS, base, tmp_path / "parts", resume=True, **plan)
    assert again.history.columns == whole.history.columns
    name = "adapter_model.safetensors" if lora else "model.safetensors"
    assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()


def test_conversations_tell_their_prompt_by_their_beginning() -> None:
    tok = tuned.tokenizer()
    talk = tuned.conversation(0)["messages"]
    other = [*talk[:3], {"role": "assistant", "content": "no"}]
    one = pair_of(Example("", {"chosen": talk, "rejected": other}), tok, 200, "error")
    two = pair_of(Example("", {"prompt": talk[:3], "chosen": talk[3:], "rejected": other[3:]}), tok, 200, "error")
    assert one == two
    assert one is not None
    assert tok.decode([i for i, wanted in zip(one[1].ids, one[1].learned) if wanted]) == "no<|im_end|>\n"


def test_long_pairs_follow_the_rule() -> None:
    tok = tuned.tokenizer()
    example = Example("data.jsonl:4", {"prompt": "yes no " * 10, "chosen": "good bad " * 20, "rejected": "one"})
    whole = pair_of(example, tok, 10_000, "error")
    assert whole is not None
    prompt = [i for i, wanted in zip(whole[0].ids, whole[0].learned) if not wanted]
    for rule, part in (("keep_end", prompt[-8:]), ("keep_start", prompt[:8])):
        cut = pair_of(example, tok, 16, rule)
        assert cut is not None
        assert [row.ids[:8] for row in cut] == [part, part]
        assert len(cut[0]) == 16
        assert cut[0].targets == 8
    assert pair_of(example, tok, 16, "drop") is None
    with pytest.raises(ValueError, match=r"data\.jsonl:4: has \d+ tokens, more than context=16"):
        pair_of(example, tok, 16, "error")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"prompt": "x", "chosen": "a"}, r'needs "prompt", "chosen" and "rejected"; it has \'prompt\', \'chosen\''),
        ({"chosen": "a", "rejected": "b"}, '"prompt" must be a text'),
        ({"prompt": 3, "chosen": "a", "rejected": "b"}, '"prompt" must be a text, got 3'),
        ({"prompt": "", "chosen": "a", "rejected": "b"}, '"prompt" is empty'),
        ({"prompt": "x", "chosen": "a", "rejected": ["b"]}, r'"prompt" must be a list of messages'),
    ],
)
def test_what_is_wrong_is_told_with_its_line(values: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=r"data\.jsonl:9: " + says):
        pair_of(Example("data.jsonl:9", values), tuned.tokenizer(), 64, "error")


def test_settings_that_do_not_go_are_told() -> None:
    with pytest.raises(ValueError, match="loss_type is one of sigmoid, ipo, hinge"):
        DPORecipe(model="x", loss_type="kto")
    with pytest.raises(ValueError, match="beta must be above 0"):
        DPORecipe(model="x", beta=0.0)
    with pytest.raises(ValueError, match="label_smoothing is for"):
        DPORecipe(model="x", loss_type="ipo", label_smoothing=0.1)
    with pytest.raises(ValueError, match="save_dtype is for whole models"):
        DPORecipe(model="x", lora=2, save_dtype="bfloat16")
    one = votive.ones(1)
    with pytest.raises(ValueError, match="loss_type is one of"):
        dpo_loss(one, one, one, one, loss_type="kto")
