"""Sessions in files and as programs: what is refused, and what comes out the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import votive
from votive import glass
from votive.serialization import FileFormatError

from .session_models import model, start, text_model, tokenizer

SETUP = """
from tests.glass.session_models import text_model, tokenizer as make_tokenizer

model, tokenizer = text_model(), make_tokenizer()
"""


def test_another_model_or_tokenizer_is_refused(tmp_path: Path) -> None:
    session = glass.Session(text_model(), tokenizer(), "a cat")
    session.step(2)
    path = tmp_path / "one.votive"
    session.save(path)
    other = text_model()
    with votive.no_grad():
        other.lm_head.weight.mul_(1.5)
    with pytest.raises(glass.SessionMismatch, match="was made with another model: a LlamaFor"):
        glass.Session.load(path, other, tokenizer())
    forced = glass.Session.load(path, other, tokenizer(), force=True)
    with pytest.raises(glass.SessionMismatch, match="node 0: its logits differ"):
        forced.replay()
    assert not forced.replay(strict=False).exact
    words = votive.text.train_bpe(["other words here here"], vocab_size=258, progress=False)
    with pytest.raises(glass.SessionMismatch, match="another tokenizer"):
        glass.Session.load(path, text_model(), words)
    assert glass.Session.load(path, text_model(), tokenizer()).text == session.text


def test_a_file_that_is_no_session_is_refused(tmp_path: Path) -> None:
    votive.save({"weight": votive.ones(2)}, tmp_path / "weights.votive")
    with pytest.raises(FileFormatError, match="holds no session"):
        glass.Session.load(tmp_path / "weights.votive", model("llama"))
    session = start()
    session.save(tmp_path / "one.votive")
    result = votive.load(tmp_path / "one.votive")
    del result["nodes"]
    votive.save(result, tmp_path / "two.votive")
    with pytest.raises(FileFormatError, match="is damaged"):
        glass.Session.load(tmp_path / "two.votive", model("llama"))


def test_the_hash_of_a_model_is_that_of_its_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    assert glass.model_hash(text_model()) == glass.model_hash(text_model())
    monkeypatch.setattr("votive.glass.session_file._ALL_BYTES", 1000)
    first, second = text_model(), text_model()
    assert glass.model_hash(first).startswith("sampled:")
    with votive.no_grad():
        second.lm_head.weight[0, 0] += 1
    assert glass.model_hash(first) != glass.model_hash(second)


def test_the_script_of_a_session_makes_it_again(tmp_path: Path) -> None:
    session = glass.Session(
        text_model(),
        tokenizer(),
        "a cat",
        do_sample=True,
        seed=9,
        temperature=0.9,
        edits=[glass.Edit("layers.0.mlp", "scale", 0.5, positions=[1])],
    )
    session.step(3)
    session.undo()
    session.choose(" dog")
    session.branch()
    session.set_sampler(top_p=0.9)
    list(session.auto(4))
    session.set_edits([*session.edits, glass.Edit("layers.1.mlp", "add", votive.rand(32))])
    session.set_edits([*session.edits, glass.Edit("layers.1", "add", votive.randn(64)[:32] / 3)])
    session.step(2)
    session.jump(2)
    session.set_prompt("a dog")
    session.step(2)
    session.jump(len(session) - 4)
    program = tmp_path / "again.py"
    program.write_text(session.to_script(SETUP) + f"session.save({str(tmp_path / 'again.votive')!r})\n")
    ran = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": "."},
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == session.text.strip()
    again = glass.Session.load(tmp_path / "again.votive", text_model(), tokenizer())
    assert [n.key() for n in again.nodes] == [n.key() for n in session.nodes]
    seen = [(a, b) for a, b in zip(again.nodes, session.nodes, strict=True) if a._outlook]
    assert len(seen) > 5
    assert all(a.digest == b.digest for a, b in seen)


def test_the_script_of_a_loaded_model_loads_it(tmp_path: Path) -> None:
    text_model().save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    loaded = votive.models.AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    session = glass.Session(loaded, tokenizer(), "a dog", do_sample=True)
    session.step(3)
    (tmp_path / "again.py").write_text(session.to_script())
    ran = subprocess.run(
        [sys.executable, str(tmp_path / "again.py")],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": "."},
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == session.text.strip()


def test_a_script_needs_to_know_where_the_model_comes_from() -> None:
    with pytest.raises(ValueError, match="give setup="):
        start().to_script()
