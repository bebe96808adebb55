"""Examples for fine-tuning: read, put in a chat's format, marked where they are learned, packed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import votive
from tests.train import tuned
from votive.train.conversations import Encoded, completed, encode, fitted
from votive.train.examples import Example, apart, read_examples
from votive.train.packing import Collate, Shares, check_packing, pack, rows_of


@pytest.fixture(scope="module")
def tok() -> Any:
    return tuned.tokenizer()


def said(tok: Any, found: Encoded) -> list[str]:
    """The runs of tokens that are learned, as texts."""
    runs: list[list[int]] = [[]]
    for i, wanted in zip(found.ids, found.learned, strict=True):
        if wanted:
            runs[-1].append(i)
        elif runs[-1]:
            runs.append([])
    return [tok.decode(run) for run in runs if run]


def test_only_what_the_assistant_says_is_learned(tok: Any) -> None:
    example = Example("", tuned.conversation(1))
    plain = encode(example, tok)
    assert said(tok, plain) == ["yes<|im_end|>\n", "three dog<|im_end|>\n"]
    marked = encode(example, tuned.tokenizer(tuned.MARKED))
    assert marked.ids == plain.ids
    assert said(tok, marked) == ["yes<|im_end|>", "three dog<|im_end|>"]
    assert all(encode(example, tok, "all").learned)


def test_a_template_that_rewrites_what_was_said_needs_marks(tok: Any) -> None:
    # As Qwen3's leaves out thoughts of earlier answers.
    other = tuned.tokenizer(
        "{% for m in messages %}{{ m.role }} {% if loop.last %}thinks {% endif %}{{ m.content }}\n{% endfor %}"
    )
    example = Example("data.jsonl:7", tuned.conversation(1))
    with pytest.raises(ValueError, match=r"data\.jsonl:7: .*generation"):
        encode(example, other)
    assert encode(example, other, "all").targets
    with pytest.raises(ValueError, match="no chat template"):
        encode(example, tuned.tokenizer(None))


def test_completions_are_learned_behind_their_prompts(tok: Any) -> None:
    found = encode(Example("", {"prompt": "the cat", "completion": " sat"}), tok)
    assert said(tok, found) == [" sat<|endoftext|>"]
    # " s" would be one token of "the cat sat"; behind a prompt that ends with a space, it is none.
    split = encode(Example("", {"prompt": "the cat ", "completion": "sat"}), tok)
    prompt = tok.encode("the cat ", add_special_tokens=False)
    assert split.ids[: len(prompt)] == prompt
    assert said(tok, split) == ["sat<|endoftext|>"]
    talk = tuned.conversation(0)["messages"]
    before, behind = completed(Example("", {"prompt": talk[:1], "completion": talk[1:2]}), tok, "completion")
    assert tok.decode(before).endswith("<|im_start|>assistant\n")
    assert tok.decode(behind) == "no<|im_end|>\n"
    whole = encode(Example("", {"text": "the king"}), tok)
    assert tok.decode(whole.ids) == "the king<|endoftext|>"
    assert all(whole.learned)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"text": "x"', r":2: not valid JSON"),
        ("[1]", r":2: holds a list"),
        ('{"txt": "x"}', r":2: needs \"messages\".*'txt'"),
        ('{"text": 3}', r':2: "text" must be a text, got 3'),
        ('{"prompt": "x"}', r':2: "completion" must be a text, got nothing'),
        ('{"messages": "hi"}', r':2: "messages" must be a list of messages'),
        ('{"messages": [{"role": "user"}]}', r':2: "messages"\[0\] has no "content"'),
        ('{"messages": [{"content": "x"}]}', r':2: "messages"\[0\] must be an object with "role"'),
        ('{"messages": [{"role": "user", "content": "x"}]}', r":2: no message is the assistant's"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tok: Any, tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text('{"text": "fine"}\n' + line + "\n")
    with pytest.raises(ValueError, match=r"data\.jsonl" + says):
        [encode(example, tok) for example in read_examples(path)]


def test_what_is_no_data_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="is no file"):
        read_examples(tmp_path / "missing.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(ValueError, match="holds no example"):
        read_examples(tmp_path / "empty.jsonl")
    with pytest.raises(TypeError, match="examples are dicts"):
        read_examples(["text"])  # type: ignore[list-item]


def test_examples_that_are_held_out_are_drawn_from_everywhere() -> None:
    examples = read_examples([{"text": str(i)} for i in range(100)])
    train, held_out = apart(examples, 0.1)
    assert len(held_out) == 10
    assert train + held_out != examples
    assert sorted(train + held_out, key=examples.index) == examples
    assert (train, held_out) == apart(examples, 0.1)
    assert held_out != apart(examples, 0.1, seed=1)[1]
    assert [len(part) for part in apart(examples[:1], 0.9)] == [1, 0]


def test_long_examples_follow_the_rule() -> None:
    example, found = Example("data.jsonl:1", {}), Encoded([1, 2, 3, 4], [False, False, True, True])
    assert fitted(example, found, 4, "error") is found
    assert fitted(example, found, 3, "keep_start") == Encoded([1, 2, 3], [False, False, True])
    assert fitted(example, found, 3, "keep_end") == Encoded([2, 3, 4], [False, True, True])
    assert fitted(example, found, 3, "drop") is None
    assert fitted(example, found, 2, "keep_start") is None  # nothing to learn is left
    with pytest.raises(ValueError, match=r"data\.jsonl:1: has 4 tokens, more than context=3"):
        fitted(example, found, 3, "error")


def test_packing_fills_rows_without_cutting() -> None:
    lengths = [9, 1, 5, 5, 3, 7, 2, 8, 4, 6]
    rows = pack(lengths, 10)
    assert sorted(i for row in rows for i in row) == list(range(len(lengths)))
    assert all(sum(lengths[i] for i in row) <= 10 for row in rows)
    assert len(rows) == 5  # 50 tokens: no row has room left
    assert pack([], 4) == []


@pytest.mark.parametrize("family", ["qwen3", "gpt2"])
def test_packed_rows_give_the_loss_and_gradients_of_single_ones(tok: Any, family: str) -> None:
    votive.manual_seed(0)
    sizes = {"vocab_size": len(tok), "initializer_range": 0.2}
    if family == "gpt2":
        config: Any = votive.models.GPT2Config(**sizes, n_embd=32, n_layer=2, n_head=4, n_positions=128)
        config.attn_pdrop = config.resid_pdrop = config.embd_pdrop = 0.0
        model: Any = votive.models.GPT2LMHeadModel(config)
    else:
        model = tuned.decoder(tok)
    model.eval()
    examples = [encode(Example("", tuned.conversation(i)), tok) for i in range(6)]
    grads, losses = [], []
    for packed in (False, True):
        rows = rows_of(examples, 128, packed)
        model.zero_grad()
        found = model(**Collate(0, packed=packed)(rows), use_cache=False)
        found.loss.backward()
        losses.append(float(found.loss))
        grads.append({n: p.grad.clone() for n, p in model.named_parameters()})
        assert len(rows) < 6 if packed else len(rows) == 6
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)
    for name, grad in grads[0].items():
        assert float((grad - grads[1][name]).abs().max()) < 1e-4, name
    check_packing(model, rows_of(examples, 128, True))


class Running(votive.nn.Module):
    """A model that carries a state along its rows."""

    def __init__(self, vocab: int) -> None:
        super().__init__()
        self.embed = votive.nn.Embedding(vocab, vocab)
        self.device = votive.device("cpu")

    def forward(self, input_ids: Any, attention_mask: Any, position_ids: Any = None, use_cache: bool = False) -> Any:
        return votive.models.output.CausalLMOutput(logits=self.embed(input_ids).cumsum(1))


def test_models_that_carry_a_state_or_see_a_window_are_not_packed(tok: Any) -> None:
    examples = [encode(Example("", tuned.conversation(i)), tok) for i in range(4)]
    rows = rows_of(examples, 128, True)
    votive.manual_seed(0)
    with pytest.raises(ValueError, match="packing=False"):
        check_packing(Running(len(tok)), rows)
    window = votive.models.MistralConfig(
        vocab_size=len(tok), hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, sliding_window=4, initializer_range=0.2,
    )  # fmt: skip
    with pytest.raises(ValueError, match="packing=False"):
        check_packing(votive.models.MistralForCausalLM(window), rows)
    window.sliding_window = 64  # wider than any example
    check_packing(votive.models.MistralForCausalLM(window), rows)


def test_a_step_of_several_batches_is_the_mean_of_all_their_targets() -> None:
    labels = [[0, 1, 1, 1], [0, 1, -100, -100], [0, 1, 1, -100]]
    batches = [{"labels": votive.tensor([row])} for row in labels]
    shares = [float(batch["share"]) for batch in Shares(batches, 2)]
    assert shares == [1.5, 0.5, 1.0]  # the last group has one batch
