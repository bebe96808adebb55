"""`votive convert`: from any format to any, names, tokenizer and bits included."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from tests import tiny_sizes
from votive.models import AutoModelForCausalLM
from votive.text import Tokenizer

Run = Callable[..., tuple[int, str, str]]
RunJson = Callable[..., Any]
IDS = [[5, 17, 300, 2, 90]]


def logits(path: Path) -> Any:
    with votive.no_grad():
        return AutoModelForCausalLM.from_pretrained(path)(votive.tensor(IDS)).logits


@pytest.mark.parametrize(("there", "back"), [("m.gguf", "again"), ("shards", "m.safetensors"), ("copy", "copy2")])
def test_a_model_survives_the_way_there_and_back(run: Run, model: Path, tmp_path: Path, there: str, back: str) -> None:
    extra = ["--max-shard-size", "20KB"] if there == "shards" else []
    assert run("convert", model, tmp_path / there, *extra)[0] == 0
    assert run("convert", tmp_path / there, tmp_path / back)[0] == 0
    assert run("diff", model, tmp_path / back)[0] == 0
    if there == "shards":
        assert len(list((tmp_path / there).glob("model-*.safetensors"))) > 1


@pytest.mark.parametrize("name", ["m.gguf", "folder"])
def test_a_converted_model_runs_with_its_tokenizer(run: Run, chat_model: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    assert run("convert", chat_model, out)[0] == 0
    assert votive.equal(logits(out), logits(chat_model))
    ours, theirs = Tokenizer.from_pretrained(out), Tokenizer.from_pretrained(chat_model)
    text = "Once upon a time <|im_end|> é☃"
    assert ours.encode(text) == theirs.encode(text)
    assert ours.chat_template == theirs.chat_template


def test_a_folder_from_gguf_has_all_files(run: Run, chat_model: Path, tmp_path: Path) -> None:
    run("convert", chat_model, tmp_path / "m.gguf")
    assert run("convert", tmp_path / "m.gguf", tmp_path / "back", "--dtype", "bfloat16")[0] == 0
    config = json.loads((tmp_path / "back" / "config.json").read_text())
    assert config["model_type"] == "qwen3"
    assert config["dtype"] == "bfloat16"
    assert AutoModelForCausalLM.from_pretrained(tmp_path / "back").dtype is votive.bfloat16
    assert (tmp_path / "back" / "tokenizer.json").is_file()


@pytest.mark.parametrize("kind", ["q8_0", "q4_0", "Q5_1"])
def test_quantized_files_hold_blocks_near_the_weights(
    run: Run, run_json: RunJson, model: Path, tmp_path: Path, kind: str
) -> None:
    out = tmp_path / "q.gguf"
    assert run("convert", model, out, "--quantize", kind)[0] == 0
    found = run_json("inspect", out)
    stored = {r["name"]: r["stored"] for r in found["tensors"]}
    assert stored["blk.0.ffn_up.weight"] == kind.upper()
    assert stored["output_norm.weight"] == "F32"
    near = {"q8_0": 0.999, "q4_0": 0.98, "Q5_1": 0.99}[kind]
    code, printed, _ = run("diff", model, out, "--model", "--json")
    assert code == 1
    for row in json.loads(printed)["tensors"]:
        assert row["cosine"] > near


def test_gguf_is_quantized_anew_and_keeps_its_metadata(
    run: Run, run_json: RunJson, model: Path, tmp_path: Path
) -> None:
    a, b = tmp_path / "a.gguf", tmp_path / "b.gguf"
    run("convert", model, a)
    assert run("convert", a, b, "--quantize", "q8_0")[0] == 0
    before, after = (run_json("inspect", p)["metadata"] for p in (a, b))
    assert after.pop("general.file_type") == 7
    assert after.pop("general.quantization_version") == 2
    before.pop("general.file_type", None)
    assert after == before


@pytest.mark.parametrize("options", [[], ["--keep-names"]])
def test_copying_gguf_copies_blocks(run: Run, model: Path, tmp_path: Path, options: list[str]) -> None:
    a, b = tmp_path / "a.gguf", tmp_path / "b.gguf"
    run("convert", model, a, "--quantize", "q4_0")
    assert run("convert", a, b, *options)[0] == 0
    assert a.read_bytes() == b.read_bytes()


@pytest.mark.parametrize("out", ["numbers", "numbers.safetensors"])
def test_blocks_in_a_folder_become_numbers(run: Run, model: Path, tmp_path: Path, out: str) -> None:
    made = AutoModelForCausalLM.from_pretrained(model)
    votive.quantize_(made, "q8_0")
    made.save_pretrained(tmp_path / "blocks")
    assert run("convert", tmp_path / "blocks", tmp_path / out, "--dtype", "float32")[0] == 0
    path = tmp_path / out / "model.safetensors" if out == "numbers" else tmp_path / out
    found = votive.io.safetensors.load_file(path)
    assert {t.dtype for t in found.values()} == {votive.float32}
    wanted = made.state_dict()
    assert all(t.equal(wanted[n].to(votive.float32)) for n, t in found.items())


def test_parts_of_a_sentence_encoder_go_along(run: Run, tmp_path: Path) -> None:
    folder, out = tmp_path / "encoder", tmp_path / "copy"
    votive.text.train_bpe(["a cat"], 260, progress=False).save_pretrained(folder)
    config = votive.models.BertConfig(
        vocab_size=260, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2
    )
    votive.models.BertModel(config).save_pretrained(folder)
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    rows = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in kinds]
    (folder / "modules.json").write_text(json.dumps(rows))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    assert run("convert", folder, out)[0] == 0
    before, after = map(votive.models.SentenceEncoder.from_pretrained, (folder, out))
    assert after.pooling == before.pooling == ["cls_token"]
    assert votive.equal(after.encode("a cat"), before.encode("a cat"))


def test_tensors_are_converted_picked_and_renamed(run: Run, run_json: RunJson, weights: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.npz"
    code, _, err = run(
        "convert",
        weights,
        out,
        "--drop",
        "bias",
        "--rename",
        r"^model\.=",
        "--rename",
        "layers=blocks",
        "--dtype",
        "float16",
    )
    assert code == 0, err
    with np.load(out) as found:
        assert sorted(found) == ["blocks.0.mlp.up.weight", "blocks.1.mlp.up.weight", "embed.weight", "steps"]
        assert found["embed.weight"].dtype == np.float16
        assert found["steps"] == 3
        assert found["steps"].dtype == np.int64


def test_bfloat16_becomes_float32_for_numpy_and_is_told(run: Run, weights: Path, tmp_path: Path) -> None:
    _, _, err = run("convert", weights, tmp_path / "w.npz")
    assert "become float32" in err
    with np.load(tmp_path / "w.npz") as found:
        assert found["model.embed.weight"].dtype == np.float32


def test_one_tensor_as_npy(run: Run, weights: Path, tmp_path: Path) -> None:
    out = tmp_path / "w.npy"
    assert run("convert", weights, out)[0] == 2
    assert run("convert", weights, out, "--tensor", "bias")[0] == 0
    assert np.array_equal(np.load(out), [0, np.nan, np.inf, 1], equal_nan=True)


def test_names_may_stay_as_they_are(run: Run, run_json: RunJson, model: Path, tmp_path: Path) -> None:
    run("convert", model, tmp_path / "m.gguf")
    run("convert", tmp_path / "m.gguf", tmp_path / "k.safetensors", "--keep-names")
    names = [r["name"] for r in run_json("inspect", tmp_path / "k.safetensors")["tensors"]]
    assert "blk.0.attn_q.weight" in names


def test_a_llama_as_llama2c(run: Run, tmp_path: Path) -> None:
    config = votive.models.LlamaConfig(
        **tiny_sizes.transformer(16, 32, layers=2, heads=2, vocab=64),
        max_position_embeddings=32,
        rms_norm_eps=1e-5,
        tie_word_embeddings=True,
    )
    made = votive.models.LlamaForCausalLM(config)
    made.save_pretrained(tmp_path / "llama")
    assert run("convert", tmp_path / "llama", tmp_path / "m.bin")[0] == 0
    assert run("convert", tmp_path / "m.bin", tmp_path / "back")[0] == 0
    assert run("diff", tmp_path / "llama", tmp_path / "back")[0] == 0


def test_torch_files_are_not_written_and_the_reason_is_told(run: Run, weights: Path, tmp_path: Path) -> None:
    code, _, err = run("convert", weights, tmp_path / "w.pt")
    assert code == 2
    assert "can run code" in err


def test_torch_files_are_read(run: Run, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    w = torch.randn(4, 5)
    torch.save({"w": w, "b": torch.ones(3).bfloat16()}, tmp_path / "m.pt")
    assert run("convert", tmp_path / "m.pt", tmp_path / "m.safetensors")[0] == 0
    with votive.io.open_weights(tmp_path / "m.safetensors") as source:
        assert np.array_equal(source.tensor("w").numpy(), w.numpy())
        assert source.info("b").stored == "BF16"


def test_what_is_there_is_replaced_only_when_asked(run: Run, weights: Path, model: Path, tmp_path: Path) -> None:
    out, folder = tmp_path / "w.npz", tmp_path / "copy"
    for target, source in ((out, weights), (folder, model)):
        assert run("convert", source, target)[0] == 0
        code, _, err = run("convert", source, target)
        assert code == 1
        assert "--force" in err
        assert run("convert", source, target, "--force")[0] == 0


@pytest.mark.parametrize(
    ("out", "options", "says"),
    [
        ("w.safetensors", ["--quantize", "q8_0"], "--quantize is for GGUF"),
        ("w.xyz", [], "is not a known format"),
        ("w.npz", ["--rename", "oops"], "--rename takes"),
        ("w.npz", ["--rename", "(=x"], "--rename"),
        ("w.bin", [], "needs a Llama"),
        ("w.gguf", ["--quantize", "q8_0", "--dtype", "float16"], "exclude each other"),
        ("w.npz", ["--max-shard-size", "1GB"], "is for folders"),
        ("w.npz", ["--tokenizer", "x"], "--tokenizer is for models"),
    ],
)
def test_what_does_not_go_together_is_wrong_usage(
    run: Run, weights: Path, tmp_path: Path, out: str, options: list[str], says: str
) -> None:
    code, _, err = run("convert", weights, tmp_path / out, *options)
    assert code == 2
    assert says in err
    assert not (tmp_path / out).exists()


def test_an_unknown_quantization_lists_the_known(run: Run, model: Path, tmp_path: Path) -> None:
    code, _, err = run("convert", model, tmp_path / "m.gguf", "--quantize", "q99")
    assert code == 1
    assert "Q4_K_M" in err


def test_the_result_as_json(run_json: RunJson, weights: Path, tmp_path: Path) -> None:
    found = run_json("convert", weights, tmp_path / "w.npz", "-q")
    assert found["tensors"] == 5
    assert found["nbytes"] == (tmp_path / "w.npz").stat().st_size


def test_converting_holds_a_part_of_the_file_in_memory(tmp_path: Path) -> None:
    import subprocess
    import sys

    from .test_inspect import sparse

    sparse(tmp_path / "large.safetensors", 1)
    code = (
        "import resource, sys\nfrom votive.cli import main\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "assert main(['convert', *sys.argv[1:], '--dtype', 'float16', '--tensor', 'layers.1.*'])"
        " == 0\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, file=sys.stderr)"
    )
    paths = [str(tmp_path / "large.safetensors"), str(tmp_path / "out.safetensors")]
    found = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr
    assert (tmp_path / "out.safetensors").stat().st_size > 128 << 20
    assert int(found.stderr) * 1024 < 150e6


def test_an_importance_matrix_changes_blocks_and_is_noted_in_the_file(
    run: Run, run_json: RunJson, tmp_path: Path
) -> None:
    wide = votive.models.LlamaConfig(
        vocab_size=260, hidden_size=256, intermediate_size=256, num_hidden_layers=1, num_attention_heads=4
    )
    folder, imatrix = tmp_path / "model", tmp_path / "imatrix.gguf"
    votive.models.LlamaForCausalLM(wide).save_pretrained(folder)
    sums = np.linspace(0, 4, 256, dtype=np.float32)
    votive.quant.save_imatrix(imatrix, {"blk.0.ffn_up.weight": (sums, 3)}, datasets=["a.txt"])
    a, b = tmp_path / "a.gguf", tmp_path / "b.gguf"
    assert run("convert", folder, a, "--quantize", "q4_k")[0] == 0
    assert run("convert", folder, b, "--quantize", "q4_k", "--imatrix", imatrix)[0] == 0
    plain, weighed = votive.io.gguf.GGUFFile(a), votive.io.gguf.GGUFFile(b)
    changed = {n for n in plain if not np.array_equal(plain.raw(n), weighed.raw(n))}
    assert changed == {"blk.0.ffn_up.weight"}
    found = run_json("inspect", b)["metadata"]
    assert found["quantize.imatrix.file"] == "imatrix.gguf"
    assert found["quantize.imatrix.dataset"] == "a.txt"
    assert (found["quantize.imatrix.entries_count"], found["quantize.imatrix.chunks_count"]) == (1, 1)
    code, _, err = run("convert", folder, tmp_path / "c.gguf", "--imatrix", imatrix)
    assert code == 2
    assert "--quantize, which is not given" in err
    code, _, err = run("convert", folder, tmp_path / "c.gguf", "--quantize", "q8_0", "--imatrix", imatrix)
    assert code == 1
    assert "q8_0 is rounded as it is" in err
    votive.quant.save_imatrix(imatrix, {"blk.7.ffn_up.weight": (sums, 3)})
    code, _, err = run("convert", folder, tmp_path / "c.gguf", "--quantize", "q4_k", "--imatrix", imatrix)
    assert code == 1
    assert "names no weight of this model" in err
