"""What a user who does something wrong reads: plain words, what may have been meant, what to do."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import votive
from votive import cli
from votive.cli import COMMANDS, numbers
from votive.cli.model_kinds import NEEDS

Run = Callable[..., tuple[int, str, str]]
# A programmer's words, which no user should have to read.
LEAKS = re.compile(
    r"Traceback|AutoModel|SentenceEncoder|Transcriber|Recipe:|Errno|local_files_only|invalid int"
    r"|unrecognized|NoneType|has no attribute|_[a-z]+\("
)


def votive_(*words: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "votive", *map(str, words)], capture_output=True, text=True, timeout=120, **options
    )


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["generate", "x", "--temp", "1"], "generate has no option --temp. Did you mean --temperat"),
        (["generate", "x", "--temprature=1"], "Did you mean --temperature?"),
        (["generate", "x", "--max-tokens", "1"], "--max-new-tokens"),
        (["chat", "--sytem", "x"], "Did you mean --system?"),
        (["env", "--jsn"], "Did you mean --json?"),
        (["studio", "--prot", "1"], "Did you mean --port?"),
        (["transcribe", "x", "--lang", "de"], "Did you mean --language?"),
        (["--quite", "env"], "Did you mean --quiet?"),
        (["gen", "x"], "Did you mean 'generate'?"),
        (["transcrbe", "x"], "Did you mean 'transcribe'?"),
        (["completion", "bsh"], "takes bash, fish, zsh; not 'bsh'. Did you mean 'bash'"),
        (["generate", "x", "--cache", "dyn"], "Did you mean 'dynamic'?"),
        (["convert", "tales", "x", "--to", "safetensor"], "Did you mean 'safetensors'?"),
        (["generate", "Once", "upon", "a", "time"], "but got: upon a time. Put a text in quotes."),
        (["generate", "--model"], "--model needs a value after it."),
        (["inspect"], "PATH is missing"),
        (["diff", "x"], "B is missing."),
        (["env", "--json=3"], "--json takes no value, but got '3'."),
        (["--oops"], "has no option --oops."),
        (["-q"], "name a command"),
    ],
)
def test_a_slip_on_the_command_line_is_exit_code_2_and_tells_what_was_meant(
    run: Run, words: list[str], meant: str
) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert meant in err
    assert "--help'." in err
    assert not LEAKS.search(err)


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_option_of_every_command_is_found_again_without_its_last_letter(run: Run, name: str) -> None:
    top = cli.parser(name)
    subs = next(a for a in top._actions if hasattr(a, "choices") and a.choices)
    options = [o for a in subs.choices[name]._actions for o in a.option_strings]
    for option in (o for o in options if len(o) > 5 and o[:-1] not in options):
        placed = {
            "bench": "",
            "completion": ["bash"],
            "diff": "xx",
            "convert": "xx",
            "quantize": ("x", "y", "--type", "x"),
            "device": ["serve"],
        }
        words = [*placed.get(name, "x"), option[:-1]]
        # What follows a script is its own.
        code, _, err = run(name, *(reversed(words) if name == "launch" else words))
        assert code == 2
        assert option in err.split("Did you mean")[-1], err


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("--max-new-tokens", ("0", "-1", "1e9", "abc", "", "1.5", "nan")),
        ("--top-k", ("-1", "2.5")),
        ("--top-p", ("0", "1.1", "-1", "nan", "inf", "x")),
        ("--min-p", ("-0.1", "2")),
        ("--temperature", ("-1", "nan", "inf", "hot")),
        ("--repetition-penalty", ("0", "-2")),
        ("--max-time", ("0", "-1")),
        ("--num-beams", ("0", "-4", "100000")),
        ("--num-return-sequences", ("0",)),
        ("--prefill-chunk-size", ("0",)),
        ("--threads", ("0", "-1", "two")),
        ("--seed", ("x", "1.5")),
    ],
)
def test_a_wrong_number_is_told_with_what_is_taken(run: Run, option: str, values: tuple[str, ...]) -> None:
    for value in values:
        code, out, err = run("generate", "x", f"{option}={value}")
        assert (code, out) == (2, "")
        assert option in err
        assert " takes a" in err
        assert f"not {value!r}." in err
        assert not LEAKS.search(err)


@pytest.mark.parametrize(
    "words",
    [
        ["bench", "--threads", "0"],
        ["bench", "--seconds", "-1"],
        ["demo", "--steps", "0"],
        ["demo", "--steps", "-1"],
        ["demo", "--seed", "-1"],
        ["studio", "--port", "99999"],
        ["studio", "--port", "-1"],
        ["inspect", "tales", "--histogram", "--bins", "0"],
        ["inspect", "tales", "--tree", "0"],
        ["diff", "tales", "tales", "--rtol", "-1"],
        ["embed", "x", "--batch-size", "0"],
        ["embed", "x", "--max-length", "0"],
        ["train", "x", "--steps", "0"],
        ["train", "x", "--lr", "0"],
        ["train", "x", "--held-out", "1"],
        ["ocr", "x", "--beams", "0"],
        ["classify", "x", "--top-k", "0"],
        ["transcribe", "x", "--beam-size", "0"],
        ["transcribe", "x", "--no-speech-threshold", "2"],
    ],
)
def test_every_command_tells_the_bounds_of_its_numbers(run: Run, words: list[str]) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert re.search(r"votive: (-k/)?--[a-z-]+ takes a (whole )?number (from|above|of at least)", err)


def test_numbers_know_their_bounds() -> None:
    assert numbers.whole(0, 3)("3") == 3
    assert numbers.number(above=0, high=1)("1") == 1.0
    for bad in ("4", "-1", "x"):
        with pytest.raises(Exception, match="takes a whole number from 0 to 3, not"):
            numbers.whole(0, 3)(bad)


# --- models -----------------------------------------------------------------------------------


def wanting(name: str, file: Path) -> list[str]:
    """The words that a command needs before its model."""
    return [name, *({"chat": [], "bench": []}.get(name, [str(file)]))]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "some.txt"
    path.write_text("Once upon a time\n")
    return path


@pytest.mark.parametrize("name", list(NEEDS))
def test_a_model_that_is_not_here_is_told_with_near_names(
    run: Run, name: str, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-model").mkdir()
    for given, says in (
        ("tails", "there is no model 'tails': no file or folder here has this name. Did you mean 'tales'?"),
        ("my-modle", "Did you mean 'my-model'?"),
        (str(tmp_path / "my-modle"), "Did you mean 'my-model'?"),
        ("nothing/like/this", "the folder 'nothing/like' does not exist."),
        ("nosuch", "Repositories are named OWNER/NAME, such as Qwen/Qwen3-0.6B."),
    ):
        words = (name, given) if name == "serve" else (*wanting(name, file), "--model", given)
        code, out, err = run(*words)
        assert (code, out) == (1, ""), err
        assert says in err
        assert not LEAKS.search(err)


@pytest.mark.parametrize("name", ["embed", "classify", "ocr", "transcribe"])
def test_a_command_without_its_model_says_which_to_get_and_how(run: Run, name: str, file: Path) -> None:
    code, out, err = run(name, file)
    assert (code, out) == (2, "")
    assert f"--model {NEEDS[name].repository} " in err
    assert f"https://huggingface.co/{NEEDS[name].repository}" in err
    assert "config.json" in err


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory, model: Path) -> dict[str, Path]:
    """A folder for each kind of model; only the configuration tells it."""
    found = {"text": model}
    for kind, config in {
        "encoder": {"model_type": "bert"},
        "image": {"model_type": "vit"},
        "speech": {"model_type": "whisper"},
        "lines": {"model_type": "vision-encoder-decoder"},
    }.items():
        found[kind] = tmp_path_factory.mktemp("kinds") / kind
        found[kind].mkdir()
        (found[kind] / "config.json").write_text(json.dumps(config))
    return found


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("generate", "text"),
        ("chat", "text"),
        ("debug", "text"),
        ("embed", "encoder"),
        ("classify", "image"),
        ("ocr", "lines"),
        ("transcribe", "speech"),
    ],
)
def test_a_model_of_another_kind_is_told_in_words(
    run: Run, name: str, fits: str, file: Path, kinds: dict[str, Path]
) -> None:
    for kind, folder in kinds.items():
        if kind == fits:
            continue
        code, out, err = run(*wanting(name, file), "--model", folder)
        assert (code, out) == (1, "")
        assert f"; {name} needs {NEEDS[name].words}, such as " in err, err
        assert not LEAKS.search(err)


def test_the_bundled_generator_is_refused_as_an_encoder(run: Run) -> None:
    code, _, err = run("embed", "x", "--model", "tales")
    assert code == 1
    first = '"tales" is a text generator; embed needs an encoder, such as all-MiniLM-L6-v2.'
    assert err.startswith(f"votive: {first}\n")


def test_a_sentence_encoder_of_any_family_is_taken(run: Run, model: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(model, tmp_path / "encoder")
    (folder / "modules.json").write_text(json.dumps([{"type": "x.Transformer", "path": ""}]))
    code, out, err = run("embed", "x", "--model", folder)
    assert code == 0, err
    assert "32 numbers" in out


def test_offline_advises_only_what_can_be_done_offline(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("huggingface_hub")
    (tmp_path / "models--some--thing").mkdir()
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    code, _, err = run("generate", "x", "--model", "nobody/nothing", "--offline")
    assert code == 1
    assert "--offline forbids to download it" in err
    assert "On this machine are: tales, some/thing." in err
    assert "network" not in err
    assert not LEAKS.search(err)


@pytest.mark.parametrize("words", [["chat", "{m}"], ["chat", "--model", "{m}"]])
def test_chat_takes_its_model_by_place_too(
    run: Run, model: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    code, _, err = run(*[w.format(m=model) for w in words], "-q")
    assert code == 0, err


def test_a_model_may_be_given_by_its_place_or_as_an_option(run: Run, model: Path) -> None:
    first = run("inspect", model)
    assert first[0] == 0
    assert run("inspect", "--model", model) == first
    for name in ("inspect", "studio", "chat"):
        code, _, err = run(name, model, "--model", "tales")
        assert code == 2
        assert "give one model" in err


@pytest.mark.parametrize("words", [["nosuch"], ["--model", "nosuch"], ["./nosuch"], ["{empty}"]])
def test_the_studio_fails_before_it_serves(tmp_path: Path, words: list[str]) -> None:
    found = votive_("studio", *[w.format(empty=tmp_path) for w in words], "--no-browser", cwd=os.getcwd())
    assert found.returncode == 1
    assert "http://" not in found.stderr
    assert "nosuch" in found.stderr or "config.json" in found.stderr


def test_the_studio_tells_what_it_cannot_show(kinds: dict[str, Path]) -> None:
    with pytest.raises(ValueError, match="is an encoder; the studio shows text generators"):
        votive.studio.serve(kinds["encoder"])


# --- files and streams ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["generate", "--file", "{t}/none"], "none: No such file or directory"),
        (["generate", "--file", "{t}"], "Is a directory"),
        (["inspect", "{t}/none"], "there is no file or folder"),
        (["inspect", "{t}/some.txt"], "has none of the known formats"),
        (["convert", "tales", "{t}/no/x.gguf"], "there is no such folder"),
        (["train", "{t}/none"], "is no file; give a text file"),
        (["debug", "--script", "{t}/none.py"], "there is no such file"),
        (["train", "{t}/some.txt", "--config", "{t}/some.txt"], "some.txt is not valid JSON"),
        (["convert", "tales", "/proc/x.gguf"], "votive: /proc/x.gguf: "),
        (["transcribe", "{t}/none.wav", "--model", "x"], "there is no such file"),
        (["classify", "{t}/none.png", "--model", "x"], "there is no such file"),
        (["embed", "x", "--model", "x", "--out", "{t}/no/x.npy"], "there is no such folder"),
        (["explain", "gleu"], "no operator is called 'gleu'. Did you mean 'gelu'"),
        (["explain", "sofmax"], "'softmax'"),
        (["explain", "zzzz"], "votive explain --list"),
        (["inspect", "tales", "--tensor", "model.nrm.weight"], "Did you mean 'model.norm.weight'?"),
    ],
)
def test_a_file_that_is_not_right_is_one_line_and_exit_code_1(
    run: Run, words: list[str], says: str, file: Path
) -> None:
    code, out, err = run(*[w.format(t=file.parent) for w in words])
    assert (code, out) == (1, "")
    assert says in err
    assert err.count("\n") == 1
    assert not LEAKS.search(err)


def test_a_text_longer_than_the_model_was_made_for_is_told(run: Run, model: Path) -> None:
    words = ["generate", "x", "--model", model, "--max-time", "0.05", "--max-new-tokens"]
    code, _, err = run(*words, "300")
    assert code == 0
    assert f"{model} was made for 256 tokens in all" in err
    assert run(*words, "5")[2] == ""


def test_a_script_that_is_no_python_is_told(run: Run, file: Path) -> None:
    code, _, err = run("debug", "--script", file)
    assert code == 2
    assert "--script takes a Python file, whose name ends in .py" in err


def test_an_option_before_the_command_is_told_where_to_stand(run: Run) -> None:
    code, _, err = run("--json", "env")
    assert code == 2
    assert "put --json after the command: votive env … --json …" in err


def test_the_studio_tells_a_folder_that_cannot_be_made(run: Run, file: Path) -> None:
    code, _, err = run("studio", "--no-browser", "--folder", file)
    assert code == 1
    assert f"{file}: File exists" in err


def test_an_empty_prompt_is_told_where_one_is_needed(run: Run, model: Path) -> None:
    code, _, err = run("debug", "", "--model", model, "--commands", "q")
    assert code == 2
    assert "the prompt is empty" in err


def closed(number: int) -> Callable[[], None]:
    return lambda: os.close(number)


@pytest.mark.parametrize("name", ["generate", "chat", "embed", "debug"])
def test_an_input_that_is_closed_is_an_empty_one(name: str, model: Path) -> None:
    words = {"generate": ["--max-new-tokens", "2"], "debug": ["Once"]}.get(name, [])
    found = votive_(name, *words, "--model", model, preexec_fn=closed(0))
    assert found.returncode == (2 if name == "embed" else 0) or "needs an encoder" in found.stderr
    assert not LEAKS.search(found.stderr)


def test_an_output_that_is_closed_or_full_is_told_without_noise() -> None:
    assert votive_("env", preexec_fn=closed(1)).stderr == ""
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    with open("/dev/full", "w") as full:
        found = subprocess.run(
            [sys.executable, "-m", "votive", "env"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120
        )
    assert found.returncode == 1
    assert found.stderr.count("\n") == 1
    assert "No space left on device; free some space" in found.stderr


def test_input_that_is_no_text_is_told(model: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-m", "votive", "generate", "--model", str(model)],
        input=b"once\xff",
        capture_output=True,
        timeout=120,
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    assert found.returncode == 1
    assert b"what is piped in is not UTF-8 text" in found.stderr


def test_arguments_that_are_no_text_are_told(model: Path) -> None:
    for words in (["generate"], ["debug", "--commands", "q"]):
        found = subprocess.run(
            [sys.executable, "-m", "votive", *words, b"once\xff", "--model", str(model)],
            capture_output=True,
            timeout=120,
        )
        assert found.returncode == 1
        assert b"the prompt is not UTF-8 text, at character 4" in found.stderr


def test_ctrl_c_while_it_writes_keeps_what_was_written() -> None:
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "votive",
            "-q",
            "generate",
            "Once upon a time",
            "--min-new-tokens",
            "5000",
            "--max-new-tokens",
            "100000",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Shells let programs in the background ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        begun = program.stdout.read(40)
        time.sleep(0.2)
        program.send_signal(signal.SIGINT)
        err = program.communicate(timeout=60)[1]
    assert begun.startswith("Once upon a time")
    assert program.returncode == 130, err
    assert err == "\nStopped by Ctrl-C.\n"
