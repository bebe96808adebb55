"""Adaptations of pipelines do what adding their product to the weights does, whatever names their files have."""

from __future__ import annotations

import copy
import json
import math
import pathlib
from typing import Any

import numpy as np
import pytest

import votive
from votive.io.safetensors import save_file
from votive.models import CLIPTextConfig, CLIPTextModel
from votive.models.diffusion import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel

SMALL: dict[str, Any] = {
    "block_out_channels": (8, 16), "layers_per_block": 1, "norm_num_groups": 4, "cross_attention_dim": 12,
    "attention_head_dim": 2, "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"), "sample_size": 8,
}  # fmt: skip
# Layers of the denoiser, by diffusers' names.
ATTENTION = "down_blocks.0.attentions.0.transformer_blocks.0.attn2"
LAYERS = [f"{ATTENTION}.to_q", f"{ATTENTION}.to_out.0", "mid_block.attentions.0.proj_in", "mid_block.resnets.1.conv2"]
WORDS = "encoder.layers.1.self_attn.q_proj"


@pytest.fixture
def pipe() -> Any:
    """A small pipeline with random weights, without words."""
    votive.manual_seed(0)
    text = CLIPTextModel(
        CLIPTextConfig(
            vocab_size=20, hidden_size=12, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
            max_position_embeddings=8, eos_token_id=19,
        )
    )  # fmt: skip
    vae = AutoencoderKL(
        block_out_channels=(8, 8), norm_num_groups=4, down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
    )  # fmt: skip
    return StableDiffusionPipeline(
        vae.eval(),
        text.eval(),
        None,
        UNet2DConditionModel(**SMALL).eval(),
        DDIMScheduler(steps_offset=1, clip_sample=False),
    )


def made(pipe: Any, **options: Any) -> Any:
    """What the pipeline makes of ids, through both networks."""
    with votive.no_grad():
        ids = votive.tensor([[3, 5, 19, 0]])
        words = pipe.text_encoder(ids)[0]
        noise = votive.randn(1, 4, 8, 8, generator=votive.Generator().manual_seed(1))
        run = pipe(
            prompt_embeds=words, negative_prompt_embeds=words * 0, latents=noise, num_inference_steps=2,
            output_type="latent", **options,
        )  # fmt: skip
    return run.images


def matrices(pipe: Any, seed: int = 0, rank: int = 2, words: bool = True) -> dict[tuple[str, str], tuple[Any, Any]]:
    """Random pairs for layers of both networks."""
    rng, found = np.random.default_rng(seed), {}
    places = [("unet", layer) for layer in LAYERS] + ([("text_encoder", WORDS)] if words else [])
    for part, layer in places:
        shape = getattr(pipe, part).get_submodule(layer).weight.shape
        kernel = tuple(shape[2:])
        down = rng.standard_normal((rank, shape[1], *kernel)).astype(np.float32) * 0.3
        up = rng.standard_normal((shape[0], rank, *[1] * len(kernel))).astype(np.float32) * 0.3
        found[part, layer] = down, up
    return found


def fused(pipe: Any, pairs: dict[tuple[str, str], tuple[Any, Any]], scale: float) -> Any:
    """What comes of weights with the products added, which are taken away again."""
    before = {}
    for (part, layer), (down, up) in pairs.items():
        weight = getattr(pipe, part).get_submodule(layer).weight
        before[weight] = weight.detach().clone()
        product = (up.reshape(up.shape[0], -1) @ down.reshape(down.shape[0], -1)).reshape(tuple(weight.shape))
        with votive.no_grad():
            weight.add_(votive.from_numpy(product * np.float32(scale)))
    found = made(pipe)
    with votive.no_grad():
        for weight, old in before.items():
            weight.copy_(old)
    return found


def name_of(kind: str, part: str, layer: str, matrix: str) -> str:
    """The name of a matrix in a file of some kind."""
    below = f"text_model.{layer}" if part == "text_encoder" else layer
    if kind == "peft":
        return f"{part}.{below}.lora_{'A' if matrix == 'down' else 'B'}.weight"
    if kind == "old":
        middle = "lora_linear_layer" if part == "text_encoder" else "lora"
        return f"{part}.{below}.{middle}.{matrix}.weight"
    if kind == "first" and part == "unet" and ".attn" in layer:
        block, _, last = layer.partition(".to_")
        return f"{part}.{block}.processor.to_{last.removesuffix('.0')}_lora.{matrix}.weight"
    if kind == "first":
        return name_of("old", part, layer, matrix)
    prefix = "lora_te" if part == "text_encoder" else "lora_unet"
    return f"{prefix}_{below.replace('.', '_')}.lora_{matrix}.weight"


def written(
    path: pathlib.Path, kind: str, pairs: dict[Any, tuple[Any, Any]], alpha: float | None = None
) -> pathlib.Path:
    """A file of such pairs."""
    tensors = {}
    for (part, layer), pair in pairs.items():
        for matrix, value in zip(("down", "up"), pair, strict=True):
            tensors[name_of(kind, part, layer, matrix)] = votive.from_numpy(value)
        if alpha is not None:
            ends = {"peft": ".lora_A.weight", "kohya": ".lora_down.weight"}
            name = name_of(kind, part, layer, "down").removesuffix(ends[kind])
            tensors[f"{name}.alpha"] = votive.tensor(alpha)
    save_file(tensors, path)
    return path


def close(a: Any, b: Any) -> bool:
    return bool(votive.allclose(a, b, rtol=1e-4, atol=1e-4 * float(b.abs().max())))


@pytest.mark.parametrize(
    ("kind", "alpha"), [("peft", None), ("peft", 4.0), ("old", None), ("first", None), ("kohya", None), ("kohya", 1.0)]
)
def test_files_do_what_their_products_do(kind: str, alpha: float | None, pipe: Any, tmp_path: pathlib.Path) -> None:
    plain, pairs = made(pipe), matrices(pipe)
    expected = fused(pipe, pairs, 1.0 if alpha is None else alpha / 2)
    assert not close(plain, expected)
    pipe.load_lora_weights(written(tmp_path / "a.safetensors", kind, pairs, alpha))
    assert close(made(pipe), expected)
    assert pipe.get_active_adapters() == ["default_0"]
    assert pipe.get_list_adapters() == {"unet": ["default_0"], "text_encoder": ["default_0"]}
    pipe.unload_lora_weights()
    assert votive.equal(made(pipe), plain)
    assert pipe.get_list_adapters() == {}
    assert isinstance(pipe.unet.get_submodule(LAYERS[0]), votive.nn.Linear)
    assert all(p.requires_grad for p in pipe.unet.parameters())


def test_adapters_are_weighed_switched_and_merged(pipe: Any, tmp_path: pathlib.Path) -> None:
    plain, a, b = made(pipe), matrices(pipe, 1), matrices(pipe, 2, rank=3, words=False)
    pipe.load_lora_weights(written(tmp_path / "a.safetensors", "peft", a), adapter_name="a")
    alone = made(pipe)
    folder = tmp_path / "b"
    folder.mkdir()
    written(folder / "pytorch_lora_weights.safetensors", "kohya", b)
    pipe.load_lora_weights(folder, adapter_name="b")
    pipe.set_adapters("a")
    assert close(made(pipe), alone)
    pipe.set_adapters("a", 0.25)
    assert close(made(pipe), fused_scaled(pipe, a, 0.25))
    pipe.set_adapters(["a", "b"], [0.5, 1.5])
    assert pipe.get_active_adapters() == ["a", "b"]
    both = made(pipe)
    pipe.fuse_lora()
    assert close(made(pipe), both)
    with pytest.raises(ValueError, match="merged"):
        made(pipe, cross_attention_kwargs={"scale": 0.5})
    pipe.unfuse_lora()
    assert close(made(pipe), both)
    # The denoiser's adapters may be made weaker for a call.
    pipe.set_adapters("b")
    assert close(made(pipe, cross_attention_kwargs={"scale": 0.5}), fused_scaled(pipe, b, 0.5))
    pipe.fuse_lora(lora_scale=0.5)
    half = made(pipe)
    assert close(half, fused_scaled(pipe, b, 0.5))
    # What is fused stays when adapters go.
    again = copy.deepcopy(pipe)
    again.unload_lora_weights()
    assert again.get_list_adapters() == {}
    assert votive.equal(made(again), half)
    pipe.unfuse_lora()
    pipe.delete_adapters("b")
    assert pipe.get_list_adapters() == {"unet": ["a"], "text_encoder": ["a"]}
    pipe.delete_adapters(["a"])
    assert votive.equal(made(pipe), plain)


def fused_scaled(pipe: Any, pairs: Any, scale: float) -> Any:
    """`fused`, of a pipeline like this without adapters."""
    other = copy.deepcopy(pipe)
    other.unfuse_lora()
    other.unload_lora_weights()
    return fused(other, pairs, scale)


def test_what_is_saved_has_the_adapters_in_it(pipe: Any, tmp_path: pathlib.Path) -> None:
    pairs = matrices(pipe, words=False)
    expected = fused(pipe, pairs, 1.0)
    pipe.load_lora_weights(written(tmp_path / "a.safetensors", "peft", pairs))
    pipe.unet.save_pretrained(tmp_path / "unet")
    pipe.unload_lora_weights()
    pipe.unet = UNet2DConditionModel.from_pretrained(tmp_path / "unet")
    assert close(made(pipe), expected)


def test_a_file_says_in_its_header_how_strong_it_is(pipe: Any, tmp_path: pathlib.Path) -> None:
    pairs = matrices(pipe, words=False)
    first = LAYERS[0]
    tensors = {
        name_of("peft", *place, matrix): votive.from_numpy(value)
        for place, pair in pairs.items()
        for matrix, value in zip(("down", "up"), pair, strict=True)
    }
    header = {"unet.r": 2, "unet.lora_alpha": 6, "unet.alpha_pattern": {first: 1}}
    save_file(tensors, tmp_path / "a.safetensors", metadata={"lora_adapter_metadata": json.dumps(header)})
    scaled = {p: (a, b * (1 / 2 if p[1] == first else 3)) for p, (a, b) in pairs.items()}
    expected = fused(pipe, scaled, 1.0)
    pipe.load_lora_weights(tmp_path / "a.safetensors")
    assert close(made(pipe), expected)
    pipe.unload_lora_weights()
    header = {"unet.lora_alpha": 2, "unet.use_rslora": True}
    save_file(tensors, tmp_path / "b.safetensors", metadata={"lora_adapter_metadata": json.dumps(header)})
    expected = fused(pipe, pairs, math.sqrt(2))
    pipe.load_lora_weights(tmp_path / "b.safetensors")
    assert close(made(pipe), expected)
    header = {"unet.use_dora": True}
    save_file(tensors, tmp_path / "c.safetensors", metadata={"lora_adapter_metadata": json.dumps(header)})
    with pytest.raises(ValueError, match="is a DoRA"):
        pipe.load_lora_weights(tmp_path / "c.safetensors")


def test_wrong_files_and_calls_say_what_to_do(pipe: Any, tmp_path: pathlib.Path) -> None:
    pairs, plain = matrices(pipe), made(pipe)
    with pytest.raises(FileNotFoundError, match="no file or folder of adaptations"):
        pipe.load_lora_weights("someone/some-lora")
    with pytest.raises(FileNotFoundError, match="the folder has no safetensors"):
        pipe.load_lora_weights(tmp_path)
    file = written(tmp_path / "a.safetensors", "peft", pairs)
    save_file({"unet.no.such.layer.lora_A.weight": votive.ones(2, 2)}, tmp_path / "b.safetensors")
    with pytest.raises(ValueError, match=r"1 entries are of no adaptation .* 'unet\.no\.such\.layer"):
        pipe.load_lora_weights(tmp_path / "b.safetensors")
    save_file({f"unet.{LAYERS[0]}.lora_A.weight": votive.ones(2, 8)}, tmp_path / "c.safetensors")
    with pytest.raises(ValueError, match="only one of its two matrices"):
        pipe.load_lora_weights(tmp_path / "c.safetensors")
    wide = {f"unet.{LAYERS[0]}.lora_{m}.weight": votive.ones(2, 5) for m in "AB"}
    save_file(wide, tmp_path / "d.safetensors")
    with pytest.raises(ValueError, match="it is of another model"):
        pipe.load_lora_weights(tmp_path / "d.safetensors")
    assert votive.equal(made(pipe), plain)
    pipe.load_lora_weights(file, adapter_name="a")
    with pytest.raises(ValueError, match="there is an adapter 'a' already"):
        pipe.load_lora_weights(file, adapter_name="a")
    with pytest.raises(ValueError, match="there is no adapter 'z'; there are a"):
        pipe.set_adapters("z")
    with pytest.raises(ValueError, match="2 weights came for 1 adapters"):
        pipe.set_adapters("a", [1.0, 2.0])
    with pytest.raises(ValueError, match="there is no adapter 'z'"):
        pipe.delete_adapters("z")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "lora_unet_input_blocks_4_1_transformer_blocks_0_attn1_to_q",
            "down_blocks_1_attentions_0_transformer_blocks_0_attn1_to_q",
        ),
        ("lora_unet_input_blocks_8_0_in_layers_2", "down_blocks_2_resnets_1_conv1"),
        ("lora_unet_input_blocks_3_0_op", "down_blocks_0_downsamplers_0_conv"),
        ("lora_unet_middle_block_1_proj_in", "mid_block_attentions_0_proj_in"),
        ("lora_unet_middle_block_2_out_layers_3", "mid_block_resnets_1_conv2"),
        ("lora_unet_output_blocks_5_1_proj_out", "up_blocks_1_attentions_2_proj_out"),
        ("lora_unet_output_blocks_2_2_conv", "up_blocks_0_upsamplers_0_conv"),
        ("lora_unet_output_blocks_0_0_skip_connection", "up_blocks_0_resnets_0_conv_shortcut"),
        ("lora_unet_time_embed_2", "time_embedding_linear_2"),
        ("lora_unet_label_emb_0_0", "add_embedding_linear_1"),
        ("lora_unet_down_blocks_0_resnets_0_conv1", "down_blocks_0_resnets_0_conv1"),
    ],
)
def test_layers_of_the_first_code_are_found(old: str, new: str) -> None:
    from votive.models.diffusion.lora_files import _place

    assert _place(old) == ("unet", new)
