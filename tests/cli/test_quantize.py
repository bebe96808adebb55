"""`votive quantize`: files and folders in blocks, what is told of them, and nothing half-written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from tests import tiny_sizes
from votive.cli import quantizing
from votive.models import AutoModelForCausalLM
from votive.quant import divergence, read_importance

from .conftest import TEXT

Run = Callable[..., tuple[int, str, str]]
RunJson = Callable[..., Any]


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose rows fill blocks of 256."""
    folder = tmp_path_factory.mktemp("quantize") / "wide"
    tokenizer = votive.text.train_bpe([TEXT], 320, special_tokens=("<|endoftext|>",), progress=False)
    config = votive.models.Qwen3Config(
        **tiny_sizes.transformer(256, 256, layers=2, heads=4, vocab=len(tokenizer), kv_heads=2),
        head_dim=64,
        tie_word_embeddings=True,
        initializer_range=0.1,
    )
    votive.manual_seed(0)
    votive.models.Qwen3ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT[:400])
    return path


def logits(path: Path) -> Any:
    with votive.no_grad():
        return AutoModelForCausalLM.from_pretrained(path)(votive.tensor([[5, 17, 300, 2, 90]])).logits


def formats(path: Path) -> set[str]:
    model = AutoModelForCausalLM.from_pretrained(path)
    return {str(p.dtype).removeprefix("votive.") for p in model.parameters()}


def left(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if p.name.startswith("."))


@pytest.mark.parametrize("out", ["small.gguf", "small"])
def test_a_file_and_a_folder_hold_what_quantizing_the_model_gives(
    run_json: RunJson, wide: Path, tmp_path: Path, out: str
) -> None:
    found = run_json("quantize", wide, tmp_path / out, "--type", "q4_k_m")
    model = AutoModelForCausalLM.from_pretrained(wide)
    votive.quantize_(model, "q4_k_m")
    wanted = model(votive.tensor([[5, 17, 300, 2, 90]])).logits
    assert float((logits(tmp_path / out) - wanted).abs().max()) <= 1e-5 * float(wanted.abs().max())
    assert formats(tmp_path / out) == {"q4_k", "q6_k", "float32"}
    assert 4.5 < found["bits_per_weight"] < 8
    assert found["nbytes"] < found["nbytes_before"] / 3
    assert left(tmp_path) == []


@pytest.mark.parametrize("method", ["gptq", "awq", "hqq"])
def test_methods_make_files_that_load_and_stay_close(
    run_json: RunJson, wide: Path, text: Path, tmp_path: Path, method: str
) -> None:
    more = [] if method == "hqq" else ["--calibrate", text]
    for out in ("a.gguf", "a"):
        run_json("quantize", wide, tmp_path / out, "--type", "q4_k_s", "--method", method, *more)
    first = AutoModelForCausalLM.from_pretrained(wide)
    made = [AutoModelForCausalLM.from_pretrained(tmp_path / out) for out in ("a.gguf", "a")]
    data = [votive.tensor([[5, 17, 300, 2, 90, 4, 8]])]
    assert all("q4_k" in formats(tmp_path / out) for out in ("a.gguf", "a"))
    found = [divergence(first, m, data).kl_divergence for m in made]
    # The last digit of a sum decides codes where few tokens leave columns alike: two runs are close, not equal.
    assert found[0] == pytest.approx(found[1], rel=0.1)
    assert found[0] < 0.2


def test_importance_is_kept_read_again_and_changes_the_codes(
    run_json: RunJson, run: Run, wide: Path, text: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "importance.safetensors"
    a, b, c = (tmp_path / f"{n}.gguf" for n in "abc")
    run_json("quantize", wide, a, "--type", "q3_k_s", "--calibrate", text, "--save-imatrix", kept)
    run_json("quantize", wide, b, "--type", "q3_k_s", "--imatrix", kept)
    run_json("quantize", wide, c, "--type", "q3_k_s")
    assert a.read_bytes() == b.read_bytes() != c.read_bytes()
    assert read_importance(kept)["lm_head.weight"][0].shape == (256,)
    code, _, err = run("quantize", wide, tmp_path / "d.gguf", "--type", "q4_0", "--imatrix", kept)
    assert code == 1
    assert "is rounded as it is; importance weighs errors in" in err
    other = tmp_path / "other.safetensors"
    votive.quant.save_importance(other, {"blk.9.ffn_up.weight": np.ones(256, np.float32)})
    assert "names no weight" in run("quantize", wide, tmp_path / "d.gguf", "--type", "q3_k_s", "--imatrix", other)[2]
    bad = tmp_path / "bad.bin"
    bad.write_bytes(b"nothing of the kind")
    assert run("quantize", wide, tmp_path / "d.gguf", "--type", "q3_k_s", "--imatrix", bad)[0] == 1
    assert not (tmp_path / "d.gguf").exists()


def test_importance_that_was_kept_serves_the_model_and_convert_too(
    run_json: RunJson, wide: Path, text: Path, tmp_path: Path
) -> None:
    kept, a, b = tmp_path / "importance.safetensors", tmp_path / "a.gguf", tmp_path / "b.gguf"
    run_json("quantize", wide, a, "--type", "q3_k_s", "--calibrate", text, "--save-imatrix", kept)
    run_json("convert", wide, b, "--quantize", "q3_k_s", "--imatrix", kept)
    model = AutoModelForCausalLM.from_pretrained(wide)
    votive.quantize_(model, "q3_k_s", imatrix=kept)
    for made in (a, b):
        found = AutoModelForCausalLM.from_pretrained(made).model.layers.state_dict()
        assert all(t.equal(found[name]) for name, t in model.model.layers.state_dict().items())


@pytest.mark.parametrize("out", ["small.gguf", "small"])
def test_mixtures_of_the_iq_kinds_are_those_of_the_model(
    run_json: RunJson, wide: Path, text: Path, tmp_path: Path, out: str
) -> None:
    kept = tmp_path / "importance.safetensors"
    votive.quant.save_importance(kept, {"model.layers.0.mlp.up_proj.weight": np.linspace(1, 2, 256)})
    run_json("quantize", wide, tmp_path / out, "--type", "iq3_m")
    run_json("quantize", wide, tmp_path / f"weighed-{out}", "--type", "iq3_xxs", "--imatrix", kept)
    for name, kind, more in ((out, "iq3_m", {}), (f"weighed-{out}", "iq3_xxs", {"imatrix": kept})):
        model = AutoModelForCausalLM.from_pretrained(wide)
        votive.quantize_(model, kind, **more)
        wanted = {n: p.dtype for n, p in model.named_parameters()}
        found = AutoModelForCausalLM.from_pretrained(tmp_path / name)
        assert {n: p.dtype for n, p in found.named_parameters()} == wanted


def test_experts_get_their_own_importance(run_json: RunJson, wide: Path, text: Path, tmp_path: Path) -> None:
    config = votive.models.MixtralConfig(
        **tiny_sizes.transformer(256, 512, layers=1, heads=4, vocab=320, kv_heads=2),
        num_local_experts=3,
        num_experts_per_tok=2,
        initializer_range=0.1,
    )
    votive.manual_seed(0)
    votive.models.MixtralForCausalLM(config).save_pretrained(tmp_path / "mixture")
    votive.text.Tokenizer.from_pretrained(wide).save_pretrained(tmp_path / "mixture")
    kept = tmp_path / "importance.safetensors"
    run_json(
        "quantize",
        tmp_path / "mixture",
        tmp_path / "a.gguf",
        "--type",
        "q3_k",
        "--calibrate",
        text,
        "--save-imatrix",
        kept,
    )
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "mixture")
    votive.quantize_(model, "q3_k", imatrix=kept)
    made = AutoModelForCausalLM.from_pretrained(tmp_path / "a.gguf").state_dict()
    names = [n for n in model.state_dict() if ".experts." in n]
    assert len(names) == 9
    for name in names:
        assert made[name].dequantize().equal(model.state_dict()[name].dequantize()), name


def test_the_report_tells_what_is_measured_and_where_the_error_sits(
    run_json: RunJson, run: Run, wide: Path, text: Path, tmp_path: Path
) -> None:
    out = tmp_path / "a.gguf"
    found = run_json("quantize", wide, out, "--type", "q4_0", "--report=full", "--text", text, "--tokens", 64)["report"]
    first, second = (AutoModelForCausalLM.from_pretrained(p, dtype="float32") for p in (wide, out))
    ids = votive.text.Tokenizer.from_pretrained(wide).encode(text.read_text())[:64]
    wanted = divergence(first, second, [votive.tensor([ids])])
    assert found["tokens"] == wanted.tokens == 63
    assert found["kl"] == pytest.approx(wanted.kl_divergence, rel=1e-4)
    assert found["perplexity"] == pytest.approx(wanted.perplexity, rel=1e-5)
    assert found["same_top"] == wanted.same_top
    assert [x["name"] for x in found["layers"]] == ["model.layers.0", "model.layers.1", "lm_head"]
    assert all(0 < x["kl"] < 1 and 0.05 < x["weight"] < 0.15 for x in found["layers"])
    code, page, _ = run("quantize", wide, out, "--type", "q8_0", "--report", "--force")
    assert code == 0
    assert "of the bundled text: perplexity" in page
    assert "KL alone" not in page


def test_blocks_are_rounded_again_from_a_file_and_that_is_said(run: Run, wide: Path, tmp_path: Path) -> None:
    assert run("quantize", wide, tmp_path / "a.gguf", "--type", "q8_0")[0] == 0
    code, out, err = run("quantize", tmp_path / "a.gguf", tmp_path / "b", "--type", "q4_0")
    assert code == 0, err
    assert "rounded a second time" in err
    assert formats(tmp_path / "b") == {"q4_0", "float32"}
    assert "q4_0 by rtn" in out


def test_tensors_alone_go_into_a_file_under_their_names(run: Run, weights: Path, tmp_path: Path) -> None:
    code, _, err = run("quantize", weights, tmp_path / "w.gguf", "--type", "q4_0")
    assert code == 0, err
    assert "the model is not known" in err
    with votive.io.open_weights(tmp_path / "w.gguf") as source:
        assert source.blocks("model.layers.0.mlp.up.weight").dtype is votive.q4_0
    assert "needs a model with its config.json" in run("quantize", weights, tmp_path / "w", "--type", "q4_0")[2]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--type", "q4km"], "Did you mean 'q4_k_m'"),
        (["--type", "q4_0", "--method", "gptq"], "needs --calibrate FILE"),
        (["--type", "q4_0", "--text", "x"], "--text goes with --report"),
        (["--type", "q4_0", "--tokens", "9"], "--tokens goes with --calibrate and --report"),
        (["--type", "q4_0", "--calibrate", "nowhere.txt"], "there is no such file"),
        (["--type", "q4_0", "--save-imatrix", "x"], "--save-imatrix goes with --calibrate"),
        (["--type", "q4_0", "--calibrate", "a", "--imatrix", "b"], "not allowed with"),
    ],
)
def test_what_does_not_go_together_is_said(run: Run, wide: Path, tmp_path: Path, words: list[str], says: str) -> None:
    code, _, err = run("quantize", wide, tmp_path / "x.gguf", *words)
    assert code != 0
    assert says in err
    assert not (tmp_path / "x.gguf").exists()


def test_nothing_is_replaced_without_force_and_nothing_half_written_stays(
    run: Run, wide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, folder = tmp_path / "a.gguf", tmp_path / "f"
    for place in (out, folder):
        assert run("quantize", wide, place, "--type", "q8_0")[0] == 0
        assert "--force replaces" in run("quantize", wide, place, "--type", "q4_0")[2]
    (folder / "notes.txt").write_text("mine")
    assert run("quantize", wide, folder, "--type", "q4_0", "--force")[0] == 0
    assert (folder / "notes.txt").read_text() == "mine"
    assert formats(folder) == {"q4_0", "float32"}
    before = out.read_bytes()

    def broken(*args: Any) -> Any:
        def encode(name: str, array: Any, format: Any) -> Any:
            raise MemoryError("no room")

        return encode

    monkeypatch.setattr("votive.quant.files.encoder", broken)
    for place in (out, folder, tmp_path / "new.gguf", tmp_path / "new"):
        assert run("quantize", wide, place, "--type", "q5_0", "--force")[0] == 1
    assert out.read_bytes() == before
    assert formats(folder) == {"q4_0", "float32"}
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "new.gguf").exists()
    assert left(tmp_path) == []


def test_a_full_disk_is_noticed_before_anything_is_written(
    run: Run, wide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = type("Usage", (), {"free": 1 << 16})()
    monkeypatch.setattr(quantizing.shutil, "disk_usage", lambda path: free)
    for out in ("a.gguf", "a"):
        code, _, err = run("quantize", wide, tmp_path / out, "--type", "q8_0")
        assert code == 1
        assert "are free; nothing was written" in err
        assert not (tmp_path / out).exists()
    assert left(tmp_path) == []


def test_shards_of_a_folder_name_their_own_blocks_only(tmp_path: Path) -> None:
    from votive.io.streamed import write_safetensors
    from votive.quant.files import SourceInBlocks, encoder

    tensors = {n: votive.randn(64, 64, generator=votive.Generator().manual_seed(i)) for i, n in enumerate("abc")}
    chosen = {"a": votive.q8_0, "b": votive.q4_0}
    source = SourceInBlocks(votive.io.MemorySource(tensors), chosen, encoder(), frozenset("b"))
    write_safetensors(source, tmp_path, metadata=source.metadata, max_shard_size=9000)
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    with votive.io.open_weights(tmp_path) as made:
        assert made.tensor("a").equal(tensors["a"].to(votive.q8_0).dequantize())
        assert made.tensor("b").equal(tensors["b"].t().contiguous().to(votive.q4_0).dequantize().t())
        assert made.tensor("c").equal(tensors["c"])


@pytest.fixture(autouse=True)
def _one_folder(tmp_path: Path) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(tmp_path)
    yield
    os.chdir(before)


def test_of_a_text_to_text_model_the_encoder_gets_blocks_too(run_json: RunJson, tmp_path: Path) -> None:
    # Its decoder has a class of its own, which is not the model of the folder.
    config = votive.models.BartConfig(
        vocab_size=64,
        d_model=64,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
    )
    votive.models.BartForConditionalGeneration(config).save_pretrained(tmp_path / "bart")
    run_json("quantize", str(tmp_path / "bart"), str(tmp_path / "out"), "--type", "q8_0")
    model = votive.models.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out")
    blocks = {name.split(".")[1] for name, p in model.named_parameters() if p.dtype is votive.q8_0}
    assert {"encoder", "decoder"} <= blocks
