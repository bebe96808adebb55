"""`votive chat`: conversations through a pipe and at a terminal."""

from __future__ import annotations

import builtins
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from votive.text import Tokenizer

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def say(run: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Pipes lines into a chat."""

    def call(model: Path, lines: list[str], *options: Any) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        return run("chat", "--model", model, "--max-new-tokens", 6, "--greedy", *options)

    return call


Say = Callable[..., tuple[int, str, str]]


def test_each_line_gets_an_answer(say: Say, chat_model: Path) -> None:
    code, out, err = say(chat_model, ["Hello", "", "And you?"], "--json")
    assert (code, err) == (0, "")
    first, second = map(json.loads, out.splitlines())
    assert first["role"] == "assistant"
    assert first["finish_reason"] in ("length", "eos")
    assert first["reused_tokens"] == 0
    assert second["prompt_tokens"] > first["prompt_tokens"]
    # All of the first prompt is the beginning of the second.
    assert second["reused_tokens"] >= first["prompt_tokens"]


def test_reusing_the_cache_does_not_change_the_answer(say: Say, chat_model: Path) -> None:
    _, out, _ = say(chat_model, ["Hello", "And you?", "/retry"], "--json")
    _, second, again = map(json.loads, out.splitlines())
    assert again["content"] == second["content"]
    assert again["reused_tokens"] == second["prompt_tokens"] - 1


def test_the_type_of_the_cache_is_that_of_the_conversation(say: Say, chat_model: Path) -> None:
    questions = ["Hello", "And you?"]
    _, want, _ = say(chat_model, questions, "--json")
    _, out, _ = say(chat_model, questions, "--json", "--cache-type-k", "f32", "--cache-type-v", "f32")
    answers = [[json.loads(line) for line in text.splitlines()] for text in (out, want)]
    for mine, other in zip(*answers, strict=True):
        assert (mine["content"], mine["reused_tokens"]) == (other["content"], other["reused_tokens"])
    _, _, err = say(chat_model, questions, "--cache-type-k", "q8_0")
    assert "heads here have 8 features" in err


def test_the_template_and_the_system_message_are_used(chat_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    from votive.cli.conversation import Conversation
    from votive.cli.model_options import load_model

    loaded = load_model(SimpleNamespace(quiet=True), str(chat_model))
    talk = Conversation(loaded, {"max_new_tokens": 3, "do_sample": False}, system="Be kind.")
    answer = "".join(talk.say("Hello"))
    assert talk.messages == [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": answer}]
    talk.messages.append({"role": "user", "content": "More"})
    text = loaded.tokenizer.decode(talk.prompt_ids())
    assert text == (
        "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n"
        f"<|im_start|>assistant\n{answer}<|im_end|>\n<|im_start|>user\nMore<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_the_token_that_ends_a_turn_is_found_in_the_template(chat_model: Path) -> None:
    from types import SimpleNamespace

    from votive.cli.conversation import Conversation
    from votive.cli.model_options import load_model

    loaded = load_model(SimpleNamespace(quiet=True), str(chat_model))
    tokenizer = Tokenizer.from_pretrained(chat_model)
    ends = Conversation(loaded, {})._ends
    assert tokenizer.convert_tokens_to_ids("<|im_end|>") in ends
    assert tokenizer.eos_token_id in ends


def test_a_model_without_a_template_continues_and_says_so(say: Say, run: Run, model: Path) -> None:
    code, out, err = say(model, ["Once upon a time"])
    assert code == 0
    assert "no chat template" in err
    expected = run("generate", "Once upon a time", "--model", model, "--greedy", "--max-new-tokens", 6, "--no-echo")[1]
    assert out == expected
    assert say(model, ["x"], "--system", "y")[0] == 1


def test_lines_that_belong_together(say: Say, chat_model: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    say(chat_model, ["one \\", "two", '"""', "three", "four", '"""', f"/save {kept}"])
    said = [m["content"] for m in json.loads(kept.read_text())["messages"] if m["role"] == "user"]
    assert said == ["one \ntwo", "three\nfour"]


def test_commands_change_the_conversation(say: Say, chat_model: Path, tmp_path: Path) -> None:
    def kept(*lines: str) -> Any:
        path = tmp_path / "kept.json"
        assert say(chat_model, [*lines, f"/save {path}"])[0] == 0
        return json.loads(path.read_text())

    assert [m["content"] for m in kept("a", "b", "/undo")["messages"]][::2] == ["a"]
    assert kept("a", "/reset")["messages"] == []
    assert kept("/system Be brief.")["system"] == "Be brief."
    assert kept("/set temperature=0.5 top_k=3")["settings"] | {"seed": 0} == {
        "max_new_tokens": 6,
        "do_sample": True,
        "temperature": 0.5,
        "top_k": 3,
        "seed": 0,
    }
    assert "top_k" not in kept("/set top_k=3", "/set top_k=")["settings"]
    assert kept("/set temperature=0")["settings"]["do_sample"] is False


def test_settings_stay_what_the_user_set(say: Say, chat_model: Path) -> None:
    code, _, err = say(chat_model, ["Hello", "/set top_k=5", "/settings"], "--seed", 1)
    assert code == 0
    assert "do_sample=True  max_new_tokens=6  seed=1  top_k=5" in err


def test_a_saved_conversation_goes_on(say: Say, chat_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    say(chat_model, ["/system Be brief.", "Hello", f"/save {path}"])
    before = json.loads(path.read_text())
    again = tmp_path / "again.json"
    assert say(chat_model, [f"/save {again}"], "--load", path)[0] == 0
    assert json.loads(again.read_text())["messages"] == before["messages"]
    assert say(chat_model, [f"/load {path}", f"/save {again}"])[0] == 0
    assert json.loads(again.read_text())["system"] == "Be brief."


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("/nonsense", "no command /nonsense"),
        ("/set nonsense=1", "no setting 'nonsense'"),
        ("/set temperature=-1", "temperature must be"),
        ("/set temperature", "NAME=VALUE"),
        ("/load /no/such/file", "No such file"),
        ("/save", "needs the name of a file"),
        ("/retry", "no question"),
    ],
)
def test_a_wrong_command_is_told_and_the_chat_goes_on(say: Say, chat_model: Path, line: str, says: str) -> None:
    code, out, err = say(chat_model, [line, "Hello"], "--json")
    assert code == 1  # a script should notice
    assert says in err
    assert len(out.splitlines()) == 1


def test_quit_ends_and_help_helps(say: Say, chat_model: Path) -> None:
    code, out, err = say(chat_model, ["/help", "/quit", "never answered"])
    assert (code, out) == (0, "")
    assert "/retry" in err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def at_terminal(run: Run, monkeypatch: pytest.MonkeyPatch, model: Path, lines: list[Any]) -> tuple[int, str, str]:
    """A chat with somebody who types these lines; an exception among them is raised."""
    waiting = iter(lines)

    def typed(sign: str) -> str:
        line = next(waiting, EOFError())
        if isinstance(line, BaseException):
            raise line
        return line

    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(builtins, "input", typed)
    return run("chat", "--model", model, "--max-new-tokens", 6, "--greedy")


def test_ctrl_c_at_the_prompt_stays_and_ctrl_d_leaves(
    run: Run, monkeypatch: pytest.MonkeyPatch, chat_model: Path
) -> None:
    code, out, err = at_terminal(run, monkeypatch, chat_model, [KeyboardInterrupt(), "Hello", "/nonsense"])
    assert code == 0
    assert "Ctrl-D or /quit" in err
    assert out.strip()


def test_ctrl_c_stops_the_answer_and_keeps_what_has_come(
    run: Run, monkeypatch: pytest.MonkeyPatch, chat_model: Path, tmp_path: Path
) -> None:
    from votive.generation import streaming

    original = streaming._events

    def interrupted(*args: Any) -> Any:
        for i, event in enumerate(original(*args)):
            if i == 2:
                raise KeyboardInterrupt
            yield event

    monkeypatch.setattr(streaming, "_events", interrupted)
    kept = tmp_path / "kept.json"
    code, _, _ = at_terminal(run, monkeypatch, chat_model, ["Hello", f"/save {kept}"])
    assert code == 0
    messages = json.loads(kept.read_text())["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant"]
