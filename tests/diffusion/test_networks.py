"""Denoisers and autoencoders say what diffusers' say, in values and gradients, from the same folders."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

import votive
from votive.models.diffusion import AutoencoderKL, UNet2DConditionModel, UNet2DModel

from .reference import agree, diffusers, drawn, torch

pytestmark = pytest.mark.parity

SMALL: dict[str, Any] = {
    "block_out_channels": (8, 16), "layers_per_block": 1, "norm_num_groups": 4, "sample_size": 8,
    "cross_attention_dim": 12, "attention_head_dim": 2,
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
}  # fmt: skip
# What files of Stable Diffusion 1, 2, XL, its refiner, LCM and others choose.
CONDITIONED: dict[str, dict[str, Any]] = {
    "sd1": {},
    "sd2": {"use_linear_projection": True, "attention_head_dim": (2, 4), "upcast_attention": True},
    "sdxl": {
        "use_linear_projection": True, "transformer_layers_per_block": (1, 2), "addition_embed_type": "text_time",
        "addition_time_embed_dim": 4, "projection_class_embeddings_input_dim": 24 + 10,
    },
    "lcm": {"time_cond_proj_dim": 6},
    "three": {
        "block_out_channels": (8, 16, 16), "layers_per_block": 2,
        "down_block_types": ("CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"),
        "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
    },
    "classes": {"num_class_embeds": 5},
    "class_timestep": {"class_embed_type": "timestep"},
    "scale_shift": {"resnet_time_scale_shift": "scale_shift", "act_fn": "gelu"},
    "fourier": {"time_embedding_type": "fourier", "flip_sin_to_cos": False, "freq_shift": 1},
    "text": {"addition_embed_type": "text", "addition_embed_type_num_heads": 2, "encoder_hid_dim": 6,
             "encoder_hid_dim_type": "text_proj"},
    "only_cross": {"only_cross_attention": (True, False)},
    "no_attention_inside": {"mid_block_type": "UNetMidBlock2D"},
    "wide_kernels": {"conv_in_kernel": 5, "conv_out_kernel": 1, "center_input_sample": True},
}  # fmt: skip


def twins(kind: Any, other: Any, folder: pathlib.Path, config: dict[str, Any]) -> tuple[Any, Any]:
    """A network of diffusers' with random weights, and ours of its folder."""
    torch.manual_seed(0)
    theirs = other(**config)
    with torch.no_grad():
        for p in theirs.parameters():
            p.add_(0.05 * torch.randn_like(p))
    theirs.eval()
    theirs.save_pretrained(folder)
    return kind.from_pretrained(folder), theirs


def inputs(config: Any, height: int = 8, width: int = 8) -> dict[str, Any]:
    """What a U-Net is asked in the tests: NumPy's arrays by their names."""
    rng = np.random.default_rng(3)

    def normal(*shape: int) -> Any:
        return rng.standard_normal(shape).astype(np.float32)

    found: dict[str, Any] = {
        "sample": normal(2, 4, height, width),
        "timestep": np.array([10, 700]),
        "encoder_hidden_states": normal(2, 5, config["encoder_hid_dim"] or config["cross_attention_dim"]),
    }
    if config["time_cond_proj_dim"]:
        found["timestep_cond"] = normal(2, 6)
    if config["num_class_embeds"]:
        found["class_labels"] = np.array([1, 4])
    if config["class_embed_type"] == "timestep":
        found["class_labels"] = np.array([3.0, 8.0], np.float32)
    if config["addition_embed_type"] == "text_time":
        found["added_cond_kwargs"] = {"text_embeds": normal(2, 10), "time_ids": rng.integers(0, 9, (2, 6))}
    return found


def given(values: Any, make: Any) -> Any:
    """Arrays as tensors of either library."""
    if isinstance(values, dict):
        return {key: given(value, make) for key, value in values.items()}
    return make(values)


@pytest.mark.parametrize("name", CONDITIONED)
def test_a_u_net_with_texts_says_what_diffusers_says(name: str, tmp_path: pathlib.Path) -> None:
    ours, theirs = twins(UNet2DConditionModel, diffusers.UNet2DConditionModel, tmp_path, SMALL | CONDITIONED[name])
    asked = inputs(theirs.config)
    a = given(asked, lambda v: votive.from_numpy(v.copy()))
    b = given(asked, lambda v: torch.from_numpy(v.copy()))
    a["sample"].requires_grad_()
    b["sample"].requires_grad_()
    got, expected = ours(**a).sample, theirs(**b).sample
    agree(got, expected, name)
    g = drawn(5, shape=tuple(expected.shape))
    got.backward(votive.from_numpy(g))
    expected.backward(torch.from_numpy(g))
    agree(a["sample"].grad, b["sample"].grad, "sample.grad")
    theirs_grads = {n: p.grad for n, p in theirs.named_parameters()}
    for n, p in ours.named_parameters():
        if theirs_grads[n] is not None:
            agree(p.grad, theirs_grads[n], n, 3e-5)


@pytest.mark.parametrize(("height", "width"), [(7, 9), (6, 5), (1, 3)])
def test_a_u_net_takes_odd_sizes_masks_and_residuals(height: int, width: int, tmp_path: pathlib.Path) -> None:
    ours, theirs = twins(UNet2DConditionModel, diffusers.UNet2DConditionModel, tmp_path, SMALL | CONDITIONED["three"])
    asked = inputs(theirs.config, height, width)
    asked["encoder_attention_mask"] = np.array([[1, 1, 0, 1, 0], [1, 0, 0, 0, 0]])
    with votive.no_grad(), torch.no_grad():
        got = ours(**given(asked, votive.from_numpy)).sample
        expected = theirs(**given(asked, torch.from_numpy)).sample
        agree(got, expected)
        down = [np.full((2, c, -(-height // s), -(-width // s)), 0.1, np.float32)
                for c, s in ((8, 1), (8, 1), (8, 1), (8, 2), (16, 2), (16, 2), (16, 4), (16, 4), (16, 4))]  # fmt: skip
        middle = np.full((2, 16, -(-height // 4), -(-width // 4)), -0.2, np.float32)
        got = ours(
            **given(asked, votive.from_numpy),
            down_block_additional_residuals=[votive.from_numpy(d) for d in down],
            mid_block_additional_residual=votive.from_numpy(middle),
        ).sample
        expected = theirs(
            **given(asked, torch.from_numpy),
            down_block_additional_residuals=[torch.from_numpy(d) for d in down],
            mid_block_additional_residual=torch.from_numpy(middle),
        ).sample
    agree(got, expected, "residuals")


UNCONDITIONED: dict[str, dict[str, Any]] = {
    "ddpm": {},
    "attention": {
        "down_block_types": ("DownBlock2D", "AttnDownBlock2D"), "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
        "attention_head_dim": 4, "freq_shift": 1, "flip_sin_to_cos": False,
    },
    "classes": {"num_class_embeds": 7, "resnet_time_scale_shift": "scale_shift"},
    "resnets": {"downsample_type": "resnet", "upsample_type": "resnet", "add_attention": False},
}  # fmt: skip


@pytest.mark.parametrize("name", UNCONDITIONED)
def test_a_u_net_without_texts_says_what_diffusers_says(name: str, tmp_path: pathlib.Path) -> None:
    config = {
        "sample_size": 8, "block_out_channels": (8, 16), "norm_num_groups": 4, "layers_per_block": 1,
        "down_block_types": ("DownBlock2D", "DownBlock2D"), "up_block_types": ("UpBlock2D", "UpBlock2D"),
        "attention_head_dim": 8, **UNCONDITIONED[name],
    }  # fmt: skip
    ours, theirs = twins(UNet2DModel, diffusers.UNet2DModel, tmp_path, config)
    x = drawn(1, shape=(2, 3, 8, 8))
    labels = {"class_labels": np.array([0, 6])} if "num_class_embeds" in config else {}
    with votive.no_grad(), torch.no_grad():
        got = ours(votive.from_numpy(x), 9, **given(labels, votive.from_numpy)).sample
        expected = theirs(torch.from_numpy(x), 9, **given(labels, torch.from_numpy)).sample
    agree(got, expected)


CODERS: dict[str, dict[str, Any]] = {
    "sd": {},
    "deep": {
        "block_out_channels": (8, 16, 16), "layers_per_block": 2,
        "down_block_types": ("DownEncoderBlock2D",) * 3, "up_block_types": ("UpDecoderBlock2D",) * 3,
    },
    "plain": {"mid_block_add_attention": False, "use_quant_conv": False, "use_post_quant_conv": False},
}  # fmt: skip


@pytest.mark.parametrize("name", CODERS)
def test_an_autoencoder_says_what_diffusers_says(name: str, tmp_path: pathlib.Path) -> None:
    config = {
        "block_out_channels": (8, 16), "norm_num_groups": 4, "latent_channels": 4, "sample_size": 16,
        "down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2, **CODERS[name],
    }  # fmt: skip
    ours, theirs = twins(AutoencoderKL, diffusers.AutoencoderKL, tmp_path, config)
    x = drawn(1, shape=(2, 3, 20, 28))
    with votive.no_grad(), torch.no_grad():
        for tiling in (False, True):
            if tiling:
                ours.enable_tiling()
                theirs.enable_tiling()
            a = ours.encode(votive.from_numpy(x)).latent_dist
            b = theirs.encode(torch.from_numpy(x)).latent_dist
            agree(a.mean, b.mean, f"mean, tiling={tiling}")
            agree(a.logvar, b.logvar, f"logvar, tiling={tiling}")
            agree(a.kl(), b.kl(), f"kl, tiling={tiling}")
            z = b.mean.numpy()
            got, expected = ours.decode(votive.from_numpy(z)).sample, theirs.decode(torch.from_numpy(z)).sample
            agree(got, expected, f"decode, tiling={tiling}")
        ours.enable_slicing()
        agree(ours.decode(votive.from_numpy(z)).sample, expected, "slices")


def test_what_is_saved_here_loads_in_diffusers(tmp_path: pathlib.Path) -> None:
    ours = UNet2DConditionModel(**SMALL).eval()
    ours.save_pretrained(tmp_path)
    theirs = diffusers.UNet2DConditionModel.from_pretrained(tmp_path, low_cpu_mem_usage=False)
    asked = inputs(theirs.config)
    with votive.no_grad(), torch.no_grad():
        agree(ours(**given(asked, votive.from_numpy)).sample, theirs(**given(asked, torch.from_numpy)).sample)
