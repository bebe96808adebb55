"""`votive generate`: prompts from anywhere, settings honoured, results as text and JSON."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import votive
from tests import tiny_sizes
from votive.models import AutoModelForCausalLM
from votive.text import Tokenizer

Run = Callable[..., tuple[int, str, str]]
RunJson = Callable[..., Any]


@pytest.fixture(autouse=True)
def no_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))


def direct(model: Path, prompt: str, **settings: Any) -> list[int]:
    """What the library writes."""
    ids = Tokenizer.from_pretrained(model).encode(prompt)
    found = AutoModelForCausalLM.from_pretrained(model).generate([ids], **settings)
    return found[0].tolist()[len(ids) :]


def ids_of(found: Any) -> list[int]:
    return [t["id"] for t in found["results"][0]["tokens"]]


def test_greedy_text_is_that_of_the_library(run: Run, run_json: RunJson, model: Path) -> None:
    expected = direct(model, "The king", max_new_tokens=9, do_sample=False)
    words = ("generate", "The king", "--model", model, "--greedy", "--max-new-tokens", 9)
    found = run_json(*words)
    assert ids_of(found) == expected
    text = Tokenizer.from_pretrained(model).decode(expected, skip_special_tokens=True)
    assert found["results"][0]["text"] == text
    code, out, err = run(*words)
    assert (code, out, err) == (0, f"The king{text}\n", "")
    assert run(*words, "--no-stream")[1] == out
    assert run(*words, "--no-echo")[1] == f"{text}\n"


def test_json_tells_log_probabilities_times_and_the_reason(run_json: RunJson, model: Path) -> None:
    found = run_json("generate", "The king", "--model", model, "--greedy", "--max-new-tokens", 4)
    tokenizer = Tokenizer.from_pretrained(model)
    assert found["prompt_tokens"] == tokenizer.encode("The king")
    (result,) = found["results"]
    assert result["finish_reason"] in ("length", "eos")
    ids = [*found["prompt_tokens"], *ids_of(found)]
    with votive.no_grad():
        logits = AutoModelForCausalLM.from_pretrained(model)(votive.tensor([ids])).logits[0]
    printed = votive.nn.functional.log_softmax(logits, -1)
    for i, token in enumerate(result["tokens"]):
        at = len(found["prompt_tokens"]) + i - 1
        assert token["logprob"] == pytest.approx(printed[at, token["id"]].item(), abs=1e-4)
    assert found["timing"]["new_tokens"] == len(result["tokens"])
    assert found["timing"]["seconds"] >= found["timing"]["first_token_seconds"] > 0


def test_a_seed_gives_the_same_text_again(run_json: RunJson, model: Path) -> None:
    words = ("generate", "Once", "--model", model, "--temperature", 1.5, "--max-new-tokens", 12)
    first = run_json(*words, "--seed", 3)
    assert ids_of(first) == ids_of(run_json(*words, "--seed", 3))
    assert ids_of(first) != ids_of(run_json(*words, "--seed", 4))
    assert first["settings"]["do_sample"] is True
    unseeded = run_json(*words)
    assert ids_of(run_json(*words, "--seed", unseeded["seed"])) == ids_of(unseeded)


@pytest.mark.parametrize(
    "options",
    [
        ["--top-k", 3],
        ["--top-p", 0.5],
        ["--min-p", 0.2],
        ["--typical-p", 0.5],
        ["--repetition-penalty", 1.4, "--sample"],
        ["--presence-penalty", 1.0, "--sample"],
        ["--frequency-penalty", 1.0, "--sample"],
        ["--no-repeat-ngram-size", 2, "--greedy"],
    ],
)
def test_settings_reach_the_library(run_json: RunJson, model: Path, options: list[Any]) -> None:
    found = run_json("generate", "Once", "--model", model, *options, "--seed", 5, "--max-new-tokens", 8)
    assert ids_of(found) == direct(model, "Once", seed=5, **found["settings"])
    name = options[0][2:].replace("-", "_")
    assert found["settings"][name] == options[1]


def test_temperature_zero_is_greedy(run_json: RunJson, model: Path) -> None:
    words = ("generate", "Once", "--model", model, "--max-new-tokens", 6)
    assert ids_of(run_json(*words, "--temperature", 0)) == ids_of(run_json(*words, "--greedy"))


def test_the_prompt_comes_from_a_file_or_a_pipe(
    run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--model", model, "--greedy", "--max-new-tokens", 5)
    expected = run("generate", "The king", *words)[1]
    (tmp_path / "prompt.txt").write_text("The king")
    assert run("generate", "--file", tmp_path / "prompt.txt", *words)[1] == expected
    for more in ([], ["-"], ["--file", "-"]):
        monkeypatch.setattr(sys, "stdin", io.StringIO("The king\n"))
        assert run("generate", *more, *words)[1] == expected


def test_nothing_is_a_prompt_too(run_json: RunJson, model: Path) -> None:
    found = run_json("generate", "", "--model", model, "--max-new-tokens", 3)
    assert found["prompt_tokens"] == [Tokenizer.from_pretrained(model).eos_token_id]


def test_a_stop_string_ends_the_text_before_it(run_json: RunJson, model: Path) -> None:
    words = ("generate", "Once", "--model", model, "--greedy", "--max-new-tokens", 20)
    whole = run_json(*words)["results"][0]["text"]
    stop = whole[4:6]
    found = run_json(*words, "--stop", stop)["results"][0]
    assert found["finish_reason"] == "stop"
    assert found["stop"] == stop
    assert found["text"] == whole[: whole.index(stop)]


def test_several_texts(run: Run, run_json: RunJson, model: Path) -> None:
    words = ("generate", "Once", "--model", model, "--sample", "--max-new-tokens", 5, "-n", 3)
    assert len(run_json(*words, "--seed", 1)["results"]) == 3
    code, out, _ = run(*words)
    assert code == 0
    assert out.count("---") == 3
    assert run(*words, "--stream")[0] == 2


def test_beams_of_a_model_with_several_ends(run_json: RunJson, model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "ends"
    shutil.copytree(model, folder)
    (folder / "generation_config.json").write_text('{"eos_token_id": [0, 2]}')
    words = ("generate", "The", "--model", folder, "--num-beams", 2, "--max-new-tokens", 4)
    found = run_json(*words, "--json")
    assert 0 < found["timing"]["new_tokens"] <= 4


def test_stats_are_told_on_stderr(run: Run, model: Path) -> None:
    code, out, err = run("generate", "a", "--model", model, "--stats", "--max-new-tokens", 4)
    assert code == 0
    assert "tokens/s" not in out
    assert "written in" in err


def test_events_as_json_lines(run: Run, model: Path) -> None:
    _, out, _ = run("generate", "a", "--model", model, "--json", "--stream", "--greedy", "--max-new-tokens", 3)
    *events, last = map(json.loads, out.splitlines())
    assert [e["id"] for e in events] == ids_of(last)


def test_a_chat_template_is_used_on_request(run: Run, run_json: RunJson, chat_model: Path) -> None:
    words = ("generate", "Hello", "--model", chat_model, "--chat", "--max-new-tokens", 2)
    found = run_json(*words, "--system", "Be kind.")
    text = Tokenizer.from_pretrained(chat_model).decode(found["prompt_tokens"])
    assert text.startswith("<|im_start|>system\nBe kind.<|im_end|>")
    assert text.endswith("<|im_start|>assistant\n")
    assert run("generate", "Hello", "--model", chat_model, "--system", "x")[0] == 2


def test_a_gguf_file_and_another_dtype_run(run: Run, run_json: RunJson, model: Path, tmp_path: Path) -> None:
    run("convert", model, tmp_path / "m.gguf")
    words = ("generate", "Once", "--greedy", "--max-new-tokens", 5)
    expected = ids_of(run_json(*words, "--model", model))
    assert ids_of(run_json(*words, "--model", tmp_path / "m.gguf")) == expected
    assert run(*words, "--model", model, "--dtype", "bfloat16")[0] == 0


def test_the_default_model_is_the_bundled_one_or_a_clear_error(
    run: Run, monkeypatch: pytest.MonkeyPatch, model: Path, tmp_path: Path
) -> None:
    from votive.models import checkpoint

    monkeypatch.setattr(checkpoint, "BUNDLED", tmp_path)
    code, _, err = run("generate", "Once")
    assert code == 1
    assert "'tales' is not part of this installation" in err
    (tmp_path / "tales").symlink_to(model)
    assert run("generate", "Once", "--max-new-tokens", 3)[0] == 0


def test_a_draft_model_does_not_change_the_text(run_json: RunJson, model: Path, chat_model: Path) -> None:
    words = ("generate", "Once", "--model", model, "--greedy", "--max-new-tokens", 10)
    drafted = run_json(*words, "--draft-model", chat_model)
    assert ids_of(drafted) == ids_of(run_json(*words))


@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_the_kind_of_cache_does_not_change_the_text(run_json: RunJson, model: Path, cache: str) -> None:
    words = ("generate", "The king had", "--model", model, "--greedy", "--max-new-tokens", 10)
    other = run_json(*words, "--cache", cache, "--prefill-chunk-size", 2)
    assert ids_of(other) == ids_of(run_json(*words))


def test_beams_tell_their_scores(run_json: RunJson, model: Path) -> None:
    found = run_json("generate", "Once", "--model", model, "--num-beams", 3, "-n", 2, "--max-new-tokens", 6)
    first, second = found["results"]
    assert first["score"] >= second["score"]
    assert first["text"] != second["text"]


def test_an_encoder_with_a_decoder_writes(run: Run, run_json: RunJson, model: Path, tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_pretrained(model)
    config = votive.models.T5Config(
        vocab_size=len(tokenizer),
        d_model=16,
        d_kv=8,
        d_ff=32,
        num_layers=1,
        num_heads=2,
        decoder_start_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
    )
    votive.manual_seed(0)
    votive.models.T5ForConditionalGeneration(config).save_pretrained(tmp_path / "t5")
    tokenizer.save_pretrained(tmp_path / "t5")
    words = ("generate", "The king", "--model", tmp_path / "t5", "--max-new-tokens", 4, "--seed", 1)
    found = run_json(*words, "--sample")
    code, out, err = run(*words, "--sample")
    assert code == 0, err
    assert out == found["results"][0]["text"] + "\n"  # the prompt is not continued


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--greedy", "--temperature", "0.5"], 2, "--temperature has no effect"),
        (["--greedy", "--sample"], 2, "exclude each other"),
        (["--file", "x"], 2, "not both"),
        (["--top-p", "3"], 2, "--top-p takes a number above 0 and up to 1, not '3'."),
        (["--max-new-tokens", "0"], 2, "--max-new-tokens takes a whole number from 1 to 1,000,000"),
        (["--dtype", "float99"], 2, "takes float32, bfloat16, float16, float64; not 'float99'."),
        (["--dtype", "int8"], 2, "not 'int8'."),
        (["--stop", ""], 2, "--stop needs a text"),
        (["--tokenizer", "nosuch"], 1, "--tokenizer nosuch: no file or folder here"),
        (["--chat"], 1, "no chat template"),
        (["--threads", "0"], 2, "--threads"),
    ],
)
def test_wrong_settings_are_told(run: Run, model: Path, options: list[str], code: int, says: str) -> None:
    found, out, err = run("generate", "x", "--model", model, *options)
    assert (found, out) == (code, "")
    assert says in err


def test_a_missing_path_is_never_looked_for_elsewhere(run: Run, model: Path) -> None:
    code, _, err = run("generate", "x", "--model", model / "nope")
    assert code == 1
    assert "there is no file or folder" in err
    code, _, err = run("generate", "x", "--model", "nobody/nothing", "--offline")
    assert code == 1
    assert "hub" not in err.split("(")[0]


def test_a_file_that_is_no_text_is_named(run: Run, model: Path, tmp_path: Path) -> None:
    file = tmp_path / "prompt.txt"
    file.write_bytes(b"once\xff")
    code, _, err = run("generate", "--model", model, "--file", file)
    assert code == 1
    assert "prompt.txt: this is not UTF-8 text, at byte 4" in err


def test_the_types_of_a_cache_are_llama_cpps(run: Run, run_json: RunJson, model: Path, tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_pretrained(model)
    votive.manual_seed(0)
    sizes = tiny_sizes.transformer(32, 64, layers=2, heads=2, vocab=len(tokenizer), kv_heads=1)
    config = votive.models.Qwen3Config(**sizes, head_dim=32, initializer_range=0.3, eos_token_id=None)
    net = votive.models.Qwen3ForCausalLM(config).eval()
    net.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    words = ("generate", "Once there", "--model", tmp_path, "--greedy", "--max-new-tokens", 10)
    found = run_json(*words, "--cache-type-k", "q8_0", "--cache-type-v", "q4_0")
    prompt = tokenizer.encode("Once there")
    want = net.generate([prompt], max_new_tokens=10, cache_dtype=("q8_0", "q4_0"))[0].tolist()
    assert ids_of(found) == want[len(prompt) :]
    assert found["settings"]["cache_dtype"] == ["q8_0", "q4_0"]
    assert ids_of(run_json(*words, "--cache-type-k", "f32")) == ids_of(run_json(*words))
    code, _, err = run(*words, "--cache-type-k", "q4_k")
    assert code == 2
    assert "q4_0" in err
    code, _, err = run("generate", "Once", "--model", model, "--cache-type-v", "q8_0", "--max-new-tokens", 2)
    assert code == 1
    assert "heads here have 8 features" in err


def test_a_text_can_be_given_a_form(run: Run, run_json: RunJson, model: Path, tmp_path: Path) -> None:
    pytest.importorskip("llguidance", reason="forms are matched by llguidance")
    words = ("generate", "The king", "--model", model, "--greedy", "--max-new-tokens", 40, "--no-echo")
    assert run(*words, "--choice", "slept", "--choice", "ate")[1].strip() in ("slept", "ate")
    assert len(run(*words, "--regex", "[0-9]{4}")[1].strip()) == 4
    (tmp_path / "schema.json").write_text('{"enum": [true, false]}')
    found = run_json(*words, "--json-schema", tmp_path / "schema.json")
    assert json.loads(found["results"][0]["text"]) in (True, False)
    (tmp_path / "grammar.lark").write_text('start: "the " ("fox" | "king")')
    assert run(*words, "--grammar", tmp_path / "grammar.lark")[1].strip() in ("the fox", "the king")
    code, _, err = run(*words, "--regex", "(")
    assert code == 1
    assert "regex cannot be used" in err
    assert run(*words, "--regex", "a", "--choice", "b")[0] == 2


def test_drafts_from_the_text_itself_change_nothing(run: Run, model: Path) -> None:
    words = ("generate", "The king, the king, the king", "--model", model, "--greedy", "--max-new-tokens", 12)
    assert run(*words, "--prompt-lookup", 3) == run(*words)
