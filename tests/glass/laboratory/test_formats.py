"""Coders come back from SAELens' and Gemma Scope's files as they went, and hostile files are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from tests.attacks import forge
from votive.glass.features import SAE, load, load_gemma_scope, load_saelens, save_gemma_scope, save_saelens
from votive.io.safetensors import load_file, save_file

from . import plain
from .test_coders import FORMS, KINDS, made


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize(("kind", "k"), KINDS)
def test_a_coder_comes_back_from_saelens_files(tmp_path: Path, kind: str, k: int | None, form: dict[str, Any]) -> None:
    sae = made(kind, k, site="layers.2", **form)
    save_saelens(sae, tmp_path)
    again = load_saelens(tmp_path)
    x = votive.randn(30, 3, 12) if "layers" in form else votive.randn(30, 12)
    assert votive.allclose(again.encode(x), sae.encode(x), atol=1e-5)
    assert votive.allclose(again(x), sae(x), atol=1e-5)
    assert again.config.site == "layers.2"
    assert not again.training


# As SAELens writes them: before version 6 flat, since then with metadata.
OLD = {
    "architecture": "standard", "d_in": 6, "d_sae": 9, "activation_fn_str": "topk", "activation_fn_kwargs": {"k": 2},
    "apply_b_dec_to_input": True, "finetuning_scaling_factor": False, "context_size": 128, "model_name": "gpt2-small",
    "hook_name": "blocks.5.hook_resid_post", "hook_layer": 5, "prepend_bos": True, "dataset_path": "x",
    "normalize_activations": "none", "dtype": "float32", "device": "cpu", "sae_lens_training_version": "5.3.0",
}  # fmt: skip
NEW = {
    "architecture": "gated", "d_in": 6, "d_sae": 9, "dtype": "float32", "device": "cpu", "apply_b_dec_to_input": False,
    "normalize_activations": "none", "reshape_activations": "none",
    "metadata": {"model_name": "gemma-2-2b", "hook_name": "blocks.0.hook_mlp_out", "sae_lens_version": "6.0.0"},
}  # fmt: skip


def weights(names: str, rng: Any) -> dict[str, Any]:
    shapes = {"W_enc": (6, 9), "W_dec": (9, 6), "b_dec": (6,), "W_skip": (6, 6)}
    return {n: votive.from_numpy(rng.normal(size=shapes.get(n, (9,))).astype(np.float32)) for n in names.split()}


def write(folder: Path, cfg: Any, tensors: dict[str, Any]) -> Path:
    (folder / "cfg.json").write_text(cfg if isinstance(cfg, str) else json.dumps(cfg))
    save_file(tensors, folder / "sae_weights.safetensors")
    return folder


def test_files_of_saelens_are_read_as_saelens_computes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 6)).astype(np.float32)

    w = weights("W_enc W_dec b_enc b_dec", rng)
    sae = load(write(tmp_path, OLD, w))
    v = {n: t.numpy() for n, t in w.items()}
    pre = (x - v["b_dec"]) @ v["W_enc"] + v["b_enc"]
    f = np.where(pre >= np.sort(pre, -1)[:, -2:-1], np.maximum(pre, 0), 0)
    np.testing.assert_allclose(sae.encode(votive.from_numpy(x)).detach().numpy(), f, atol=1e-5)
    assert (sae.config.kind, sae.config.site, sae.config.model) == ("topk", "layers.5.resid_post", "gpt2-small")

    w = weights("W_enc W_dec b_gate b_mag r_mag b_dec", rng)
    sae = load(write(tmp_path, NEW, w))
    v = {n: t.numpy() for n, t in w.items()}
    gate = x @ v["W_enc"] + v["b_gate"] > 0
    f = gate * np.maximum(x @ (v["W_enc"] * np.exp(v["r_mag"])) + v["b_mag"], 0)
    np.testing.assert_allclose(sae.encode(votive.from_numpy(x)).detach().numpy(), f, atol=1e-5)
    np.testing.assert_allclose(sae(votive.from_numpy(x)).detach().numpy(), f @ v["W_dec"] + v["b_dec"], atol=1e-5)
    assert sae.config.site == "layers.0.mlp_out"

    cfg = {**NEW, "architecture": "skip_transcoder", "d_out": 6}
    w = weights("W_enc W_dec b_enc b_dec W_skip", rng)
    sae = load(write(tmp_path, cfg, w))
    v = {n: t.numpy() for n, t in w.items()}
    f = np.maximum(x @ v["W_enc"] + v["b_enc"], 0)
    wanted = f @ v["W_dec"] + v["b_dec"] + x @ v["W_skip"].T
    np.testing.assert_allclose(sae(votive.from_numpy(x)).detach().numpy(), wanted, atol=1e-5)


def test_what_is_written_is_what_saelens_expects(tmp_path: Path) -> None:
    save_saelens(made("jumprelu", None, site="layers.3"), tmp_path, dtype=votive.bfloat16)
    cfg = json.loads((tmp_path / "cfg.json").read_text())
    expected = {"architecture": "jumprelu", "d_in": 12, "d_sae": 40, "dtype": "bfloat16", "apply_b_dec_to_input": True,
                "normalize_activations": "none", "reshape_activations": "none", "device": "cpu"}  # fmt: skip
    assert {n: cfg[n] for n in expected} == expected
    found = load_file(tmp_path / "sae_weights.safetensors")
    assert {n: (tuple(t.shape), t.dtype) for n, t in found.items()} == {
        "W_enc": ((12, 40), votive.bfloat16), "W_dec": ((40, 12), votive.bfloat16), "b_enc": ((40,), votive.bfloat16),
        "b_dec": ((12,), votive.bfloat16), "threshold": ((40,), votive.bfloat16),
    }  # fmt: skip


@pytest.mark.parametrize("form", [{}, {"center": False}, {"d_out": 7}], ids=str)
@pytest.mark.parametrize(("kind", "k"), [("jumprelu", None), ("batchtopk", 4)])
def test_a_coder_comes_back_from_gemma_scope(tmp_path: Path, kind: str, k: int | None, form: dict[str, Any]) -> None:
    sae = made(kind, k, **form)
    path = tmp_path / "params.npz"
    save_gemma_scope(sae, path)
    again = load(path)
    x = votive.randn(30, 12)
    assert votive.allclose(again.encode(x), sae.encode(x), atol=2e-5)
    assert votive.allclose(again(x), sae(x), atol=2e-5)


def test_gemma_scope_is_read_as_its_authors_compute(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    v = {"W_enc": rng.normal(size=(6, 9)), "W_dec": rng.normal(size=(9, 6)), "b_enc": rng.normal(size=9),
         "b_dec": rng.normal(size=6), "threshold": rng.uniform(0.1, 2, 9)}  # fmt: skip
    np.savez(tmp_path / "params.npz", **{n: a.astype(np.float32) for n, a in v.items()})
    x = rng.normal(size=(20, 6))
    pre = x @ v["W_enc"] + v["b_enc"]
    f = (pre > v["threshold"]) * np.maximum(pre, 0)
    sae = load_gemma_scope(tmp_path / "params.npz", site="layers.20")
    got = votive.from_numpy(x.astype(np.float32))
    np.testing.assert_allclose(sae.encode(got).detach().numpy(), f, atol=1e-5)
    np.testing.assert_allclose(sae(got).detach().numpy(), f @ v["W_dec"] + v["b_dec"], atol=1e-5)
    assert load_gemma_scope(tmp_path / "params.npz", transcoder=True).config.role == "transcoder"
    with pytest.raises(ValueError, match="holds JumpReLU coders, not relu sae"):
        save_gemma_scope(SAE(4, 8, "relu"), tmp_path / "x.npz")


HUGE = {**NEW, "d_in": 10**9, "d_sae": 10**9}


@pytest.mark.parametrize(
    ("cfg", "said"),
    [
        ("[1, 2]", "holds no object"),
        ("{" * 50_000, "no JSON"),
        ("\x00", "no JSON"),
        ({**NEW, "architecture": "temporal"}, "'temporal' is unknown"),
        ({**NEW, "architecture": ["gated"]}, "unhashable"),
        ({**NEW, "normalize_activations": "layer_norm"}, "would be ignored here"),
        ({**NEW, "reshape_activations": "hook_z"}, "would be ignored here"),
        ({**NEW, "d_in": "6"}, "d_in must be a positive integer"),
        ({**NEW, "d_in": None}, "d_in must be a positive integer"),
        ({**NEW, "d_sae": -1}, "d_sae must be a positive integer"),
        ({**NEW, "d_sae": 10}, "W_enc is (6, 9), but the configuration says (6, 10)"),
        (HUGE, "but the configuration says (1000000000, 1000000000)"),
        ({**NEW, "architecture": "topk", "k": 100}, "k must be in 1..9"),
        ({**NEW, "architecture": "topk", "k": "2"}, "not supported between"),
        ({**NEW, "architecture": "standard"}, "there is no b_enc"),
        ({**NEW, "metadata": 5}, "must be objects"),
        ({"votive": {"d_in": 6, "d_sae": 9, "kind": "gated", "evil": 1}}, "unknown evil"),
        ({"votive": {"d_in": 6, "d_sae": 9, "kind": "batchtopk", "k": 2}}, "stored as jumprelu"),
    ],
    ids=str,
)
def test_a_hostile_configuration_is_refused(tmp_path: Path, cfg: Any, said: str) -> None:
    tensors = weights("W_enc W_dec b_gate b_mag r_mag b_dec", np.random.default_rng(0))
    assert said in forge.refusal(write(tmp_path, cfg, tensors), load_saelens)


def test_hostile_weights_are_refused(tmp_path: Path) -> None:
    good = weights("W_enc W_dec b_gate b_mag r_mag b_dec", np.random.default_rng(0))
    write(tmp_path, NEW, {**good, "surprise": votive.ones(2)})
    assert "surprise would be ignored" in forge.refusal(tmp_path, load_saelens)
    write(tmp_path, NEW, {**good, "b_dec": votive.full((6,), float("nan"))})
    assert "not finite" in forge.refusal(tmp_path, load_saelens)
    path = tmp_path / "sae_weights.safetensors"
    write(tmp_path, NEW, good)
    path.write_bytes(path.read_bytes()[:-1])
    forge.refusal(tmp_path, load_saelens)
    path.write_bytes(forge.safetensors({"W_enc": forge.entry("F32", (6, 9), (0, 10**15))}))
    forge.refusal(tmp_path, load_saelens)
    path.write_bytes(b"\x80\x04 no")
    forge.refusal(tmp_path, load_saelens)
    path = tmp_path / "params.npz"
    np.savez(path, W_enc=np.ones((6, 9)), W_dec=np.ones((9, 6)), b_enc=np.ones(9), b_dec=np.ones(6))
    assert "there is no threshold" in forge.refusal(path, load_gemma_scope)
    np.savez(path, W_enc=np.ones(6), W_dec=np.ones((9, 6)))
    assert "are not the matrices of a coder" in forge.refusal(path, load_gemma_scope)
    full = {"W_enc": np.ones((6, 9)), "W_dec": np.ones((9, 6)), "b_enc": np.ones(9), "b_dec": np.ones(6)}
    np.savez(path, **full, threshold=np.full(9, -1.0))
    assert "not negative" in forge.refusal(path, load_gemma_scope)
    np.savez(path, **full, threshold=np.array([{}] * 9, object))
    forge.refusal(path, load_gemma_scope)


def test_a_part_that_is_not_there_is_named() -> None:
    with pytest.raises(FileNotFoundError, match="there is sae, transcoder"):
        load("tales", "crosscoder")
    assert plain.arrays(load("tales"))["W_enc"].shape == (256, 1536)
    assert load("tales", "transcoder").config.role == "transcoder"
