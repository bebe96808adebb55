"""Learning from rewards: losses by their definition, groups, what is sampled, what is learned, what is resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from tests.train import tuned
from votive.models import AutoModelForCausalLM
from votive.train import GRPORecipe, grpo, grpo_loss
from votive.train.examples import Example
from votive.train.packing import Collate
from votive.train.policy import Method
from votive.train.reference import Reference, token_logps
from votive.train.rewards import read_rewards, rewarded
from votive.train.rollouts import Author, Judge, advantages, prompts_of

PROMPTS = [{"prompt": f"the {word}", "wanted": word} for word in ("cat", "dog", "king")]
QUICK: dict[str, Any] = {
    "num_generations": 4, "max_new_tokens": 6, "batch_size": 2, "progress": False, "context": 64, "lr": 1e-2,
}  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tok = tuned.tokenizer()
    return tuned.folder(tmp_path_factory.mktemp("base"), tuned.decoder(tok), tok)


def vowels(completions: list[str]) -> list[float]:
    return [sum(c in "aeiou" for c in text) / (len(text) + 1) for text in completions]


@pytest.mark.parity
def test_losses_and_gradients_are_those_of_the_definition_in_torch() -> None:
    torch = pytest.importorskip("torch")
    votive.manual_seed(0)
    new, old, ref = (votive.randn(5, 7) * 0.4 - 2 for _ in range(3))
    a = votive.tensor([1.5, -1.0, 0.0, 0.7, -2.0])
    new.requires_grad_()
    losses, kl, clipped = grpo_loss(new, old, a, ref, beta=0.1, epsilon=0.2, epsilon_high=0.3)
    losses.sum().backward()
    n, o, r, t = (torch.from_numpy(x.detach().numpy()) for x in (new, old, ref, a))
    n.requires_grad_()
    ratio = torch.exp(n - o)
    wanted = -torch.min(ratio * t[:, None], torch.clip(ratio, 0.8, 1.3) * t[:, None])
    divergence = torch.exp(r - n) - (r - n) - 1
    (wanted + 0.1 * divergence).sum().backward()
    assert float((losses.detach() - votive.tensor((wanted + 0.1 * divergence).detach().numpy())).abs().max()) < 1e-5
    assert kl is not None
    assert float((kl.detach() - votive.tensor(divergence.detach().numpy())).abs().max()) < 1e-5
    assert float((new.grad - votive.tensor(n.grad.numpy())).abs().max()) < 1e-5
    out = ((ratio < 0.8) & (t[:, None] < 0)) | ((ratio > 1.3) & (t[:, None] > 0))
    assert clipped.tolist() == out.float().tolist()
    assert 0 < clipped.sum().item() < 20


def test_advantages_and_likelihoods_are_those_of_numpy(base: Path) -> None:
    rewards = np.array([1.0, 0.5, 3.0, 2.0, 2.0, 2.0])
    groups = rewards.reshape(2, 3)
    apart = groups - groups.mean(1, keepdims=True)
    plain = advantages(votive.tensor(rewards.tolist()), 3, scale=False)
    np.testing.assert_allclose(plain.numpy(), apart.ravel(), atol=1e-6)
    scaled = advantages(votive.tensor(rewards.tolist()), 3)
    wanted = (apart / (groups.std(1, ddof=1, keepdims=True) + 1e-4)).ravel()
    np.testing.assert_allclose(scaled.numpy(), wanted, atol=1e-5)
    model = AutoModelForCausalLM.from_pretrained(base)
    ids = votive.tensor([[5, 6, 7, 8], [9, 10, 11, 12]])
    labels = votive.tensor([[-100, -100, 7, 8], [-100, 10, 11, -100]])
    found, there = token_logps(model, {"input_ids": ids, "labels": labels, "attention_mask": ids.ne(0).long()}, 0.7)
    logits = model(ids).logits.detach().numpy().astype(np.float64)[:, :-1] / 0.7
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    learned = labels.numpy()[:, 1:] != -100
    expected = np.take_along_axis(logs, ids.numpy()[:, 1:, None], -1)[..., 0] * learned
    np.testing.assert_allclose(found.detach().numpy(), expected, atol=1e-4)
    np.testing.assert_array_equal(there.numpy(), learned)


@pytest.mark.parametrize("loss_type", ["grpo", "dapo", "dr_grpo"])
def test_a_step_takes_the_mean_that_its_kind_says(base: Path, loss_type: str) -> None:
    tok = votive.text.Tokenizer.from_pretrained(base)
    model = AutoModelForCausalLM.from_pretrained(base)
    recipe = GRPORecipe(model="x", loss_type=loss_type, beta=0.2, temperature=0.7, num_generations=2, max_new_tokens=6)
    reference = Reference(model)
    for p in model.parameters():
        p.data.add_(0.05 * votive.randn(p.shape))
    judge = Judge(Author(model, tok, recipe), [vowels])
    method = Method(recipe, reference, model, judge)
    prompts = prompts_of([Example("", p) for p in PROMPTS], tok, recipe)
    rows, rewards = judge.answers(model, prompts)
    batch = Collate(0, packed=False)([[row] for row in rows])
    batch["reward"] = votive.tensor(rewards)
    batch["advantage"] = advantages(batch["reward"], 2)
    batch = {**method.complete(batch), "share": votive.tensor(1.0)}
    loss, values = method.step(model, batch)
    whole, means, tokens = 0.0, [], 0
    for row, a in zip(rows, batch["advantage"].tolist(), strict=True):
        one = Collate(0, packed=False)([[row]])
        new, there = token_logps(model, one, 0.7)
        before = reference(lambda m, one=one: token_logps(m, one, 0.7)[0])
        apart = (before - new)[there]
        each = -a + 0.2 * (apart.exp() - apart - 1)  # the ratio is one
        whole, tokens = whole + each.sum().item(), tokens + each.numel()
        means.append(each.mean().item())
    wanted = {"grpo": sum(means) / 6, "dapo": whole / tokens, "dr_grpo": whole / (6 * 6)}[loss_type]
    assert loss.item() == pytest.approx(wanted, abs=1e-4)
    assert values["length"].item() == pytest.approx(tokens / 6)
    assert values["reward"].item() == pytest.approx(sum(rewards) / 6)


@pytest.mark.parametrize("lora", [None, 4])
def test_answers_with_more_reward_become_likelier(base: Path, tmp_path: Path, lora: int | None) -> None:
    plan = {**QUICK, "num_generations": 8, "lora": lora, "lr": 3e-2 if lora else 1e-2, "beta": 0.0}
    made = grpo(PROMPTS, base, tmp_path / "out", reward=vowels, max_steps=40, eval_data=PROMPTS, **plan)
    rewards = made.history["reward"]
    assert sum(rewards[-5:]) > 2 * sum(rewards[:5])
    assert made.metrics["reward"] > 2 * sum(rewards[:5]) / 5
    assert "kl" not in made.history.columns


@pytest.mark.parametrize(
    "more", [{}, {"lora": 2, "loss_type": "dapo"}, {"num_iterations": 3, "accumulate": 2, "batch_size": 1}]
)
def test_a_run_that_was_stopped_ends_the_same(base: Path, tmp_path: Path, more: dict[str, Any]) -> None:
    plan = {**QUICK, "max_steps": 7, "checkpoint_every": 1, **more}
    whole = grpo(PROMPTS, base, tmp_path / "whole", reward=vowels, **plan)
    for stop in (2, 4):
        halt = [lambda t, stop=stop: t.stop() if t.step == stop else None]
        grpo(PROMPTS, base, tmp_path / "parts", reward=vowels, resume=stop > 2, callbacks=halt, **plan)
    again = grpo(PROMPTS, base, tmp_path / "parts", reward=vowels, resume=True, **plan)
    assert again.history.columns == whole.history.columns
    assert "kl" in whole.history.columns
    name = "adapter_model.safetensors" if "lora" in more else "model.safetensors"
    assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()


def test_later_steps_on_the_same_answers_leave_the_ratio_of_one(base: Path, tmp_path: Path) -> None:
    plan = {**QUICK, "max_steps": 4, "num_iterations": 2, "batch_size": 3, "lr": 5e-2, "epsilon": 0.01}
    made = grpo(PROMPTS, base, tmp_path / "out", reward=vowels, **plan)
    reward, clipped = made.history["reward"], made.history["clipped"]
    assert reward[0] == reward[1] != reward[2] == reward[3]
    assert clipped[0] == 0.0 < clipped[1]


def test_an_author_samples_from_the_bare_model_and_stops_at_ends(base: Path) -> None:
    tok = votive.text.Tokenizer.from_pretrained(base)
    model = AutoModelForCausalLM.from_pretrained(base)
    ends = tok.encode(" yes", add_special_tokens=False)[-1]
    model.generation_config = {"eos_token_id": [tok.eos_token_id, ends], "repetition_penalty": 3.0, "top_k": 1}
    recipe = GRPORecipe(model="x", max_new_tokens=40, temperature=3.0)
    author = Author(model, tok, recipe)
    model.train()
    votive.manual_seed(0)
    answers = author(model, [[5, 6, 7], [8]] * 8)
    assert model.training
    assert model.generation_config.repetition_penalty == 3.0
    assert all(ends not in answer[:-1] and tok.eos_token_id not in answer[:-1] for answer in answers)
    assert any(answer[-1] == ends for answer in answers)
    assert len({tuple(a) for a in answers}) > 8
    votive.manual_seed(0)
    assert author(model, [[5, 6, 7], [8]] * 8) == answers


def test_conversations_are_answered_as_messages(base: Path) -> None:
    tok = votive.text.Tokenizer.from_pretrained(base)
    model = AutoModelForCausalLM.from_pretrained(base)
    recipe = GRPORecipe(model="x", num_generations=2, max_new_tokens=3)
    seen: dict[str, Any] = {}

    def reward(**given: Any) -> list[float]:
        seen.update(given)
        return [1.0, 2.0]

    example = Example("", {"prompt": tuned.conversation(0)["messages"][:1], "answer": 7})
    (prompt,) = prompts_of([example], tok, recipe)
    assert tok.decode(prompt.ids).endswith("<|im_start|>assistant\n")
    rows, rewards = Judge(Author(model, tok, recipe), [reward]).answers(model, [prompt])
    assert rewards == [1.0, 2.0]
    assert seen["answer"] == [7, 7]
    assert [c[0]["role"] for c in seen["completions"]] == ["assistant"] * 2
    assert seen["prompts"] == [example.values["prompt"]] * 2
    assert seen["completion_ids"][1] == rows[1].ids[len(prompt.ids) :]


def test_rewards_come_from_files_and_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "reward.py"
    path.write_text("import math\ndef length(completions): return [len(c) for c in completions]\n")
    (read,) = read_rewards(f"{path}:length")
    assert rewarded([read, read], ["p", "p"], ["a", "bcd"]) == [2.0, 6.0]
    with pytest.raises(ValueError, match="has no function 'size'; it has length"):
        read_rewards(f"{path}:size")
    with pytest.raises(FileNotFoundError, match="is no file"):
        read_rewards(f"{tmp_path}/none.py:length")
    with pytest.raises(ValueError, match=r'named "file\.py:name"'):
        read_rewards("length")
    for wrong, error, says in (
        (lambda completions: [1.0], ValueError, "a number for each of 2 completions, got 1"),
        (lambda completions: [1.0, float("nan")], ValueError, "gave nan for 'b'"),
        (lambda completions: None, TypeError, "must give a list of numbers, got None"),
    ):
        with pytest.raises(error, match=says):
            rewarded([wrong], ["p", "p"], ["a", "b"])


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"text": "x"}, r'needs "prompt", a text or messages; it has \'text\''),
        ({"prompt": 5}, '"prompt" must be a text, got 5'),
        ({"prompt": ""}, '"prompt" is empty'),
        ({"prompt": "yes no " * 30}, r'"prompt" has \d+ tokens; context=16 less max_new_tokens=8 leaves 8'),
    ],
)
def test_what_is_wrong_is_told_with_its_line(values: dict[str, Any], says: str) -> None:
    recipe = GRPORecipe(model="x", context=16, max_new_tokens=8, truncation="error")
    with pytest.raises(ValueError, match=r"data\.jsonl:3: " + says):
        prompts_of([Example("data.jsonl:3", values)], tuned.tokenizer(), recipe)


def test_settings_that_do_not_go_are_told(base: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="num_generations must be 2 or more"):
        GRPORecipe(model="x", num_generations=1)
    with pytest.raises(ValueError, match="leaves no room for a prompt"):
        GRPORecipe(model="x", max_new_tokens=512)
    with pytest.raises(ValueError, match="loss_type is one of grpo, dapo, dr_grpo"):
        GRPORecipe(model="x", loss_type="ppo")
    with pytest.raises(ValueError, match="there are 2 in all"):
        grpo(PROMPTS, base, tmp_path / "out", reward=vowels, **{**QUICK, "accumulate": 3})
