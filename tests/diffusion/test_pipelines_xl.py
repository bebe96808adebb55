"""Stable Diffusion XL and the safety checker make of diffusers' folders what diffusers makes of them."""

from __future__ import annotations

import contextlib
import json
import pathlib
from typing import Any

import numpy as np
import pytest

import votive
from votive.models.diffusion import (
    AutoPipelineForImage2Image,
    AutoPipelineForText2Image,
    DiffusionPipeline,
    StableDiffusionImg2ImgPipeline,
    StableDiffusionPipeline,
    StableDiffusionSafetyChecker,
    StableDiffusionXLPipeline,
)  # fmt: skip

from ..text.test_clip_words import vocabulary
from .reference import agree, diffusers, drawn, torch
from .test_networks import SMALL
from .test_pipelines import both, folder, noise, pictures  # noqa: F401

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")]
transformers = pytest.importorskip("transformers", reason="compares with transformers")

WIDTHS = {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2}


def reader(kind: Any, tokenizer: Any, **config: Any) -> Any:
    """A small reader of texts of transformers'."""
    made = transformers.CLIPTextConfig(
        vocab_size=len(tokenizer), max_position_embeddings=16, eos_token_id=tokenizer.eos_token_id, **WIDTHS | config
    )
    return kind(made).eval()


@pytest.fixture(scope="module")
def xl(tmp_path_factory: Any) -> tuple[Any, Any, pathlib.Path]:
    """A small pipeline of XL's kind: ours of the folder that diffusers wrote, and diffusers'."""
    path = tmp_path_factory.mktemp("xl")
    torch.manual_seed(0)
    words = vocabulary(tmp_path_factory.mktemp("words"))
    tokenizer = transformers.CLIPTokenizer.from_pretrained(words)
    vae = diffusers.AutoencoderKL(
        block_out_channels=(8, 8), norm_num_groups=4, sample_size=16, down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2, latents_mean=[0.1, -0.2, 0.3, 0.0], latents_std=[0.9, 1.1, 1.0, 0.8],
    )  # fmt: skip
    unet = diffusers.UNet2DConditionModel(
        **SMALL | {
            "cross_attention_dim": 20, "addition_embed_type": "text_time", "addition_time_embed_dim": 4,
            "projection_class_embeddings_input_dim": 24 + 6,
        }
    )  # fmt: skip
    pipe = diffusers.StableDiffusionXLPipeline(
        vae=vae,
        text_encoder=reader(transformers.CLIPTextModel, tokenizer),
        text_encoder_2=reader(
            transformers.CLIPTextModelWithProjection, tokenizer, hidden_size=12, projection_dim=6, hidden_act="gelu"
        ),
        tokenizer=tokenizer,
        tokenizer_2=tokenizer,
        unet=unet,
        scheduler=diffusers.EulerDiscreteScheduler(beta_schedule="scaled_linear", steps_offset=1),
        add_watermarker=False,
    )
    pipe.save_pretrained(path)
    for part in ("tokenizer", "tokenizer_2"):
        for name in ("vocab.json", "merges.txt", "tokenizer_config.json"):
            (path / part / name).write_bytes((words / name).read_bytes())
        (path / part / "tokenizer.json").unlink(missing_ok=True)
    theirs = diffusers.StableDiffusionXLPipeline.from_pretrained(path, add_watermarker=False, low_cpu_mem_usage=False)
    theirs.set_progress_bar_config(disable=True)
    ours = DiffusionPipeline.from_pretrained(path)
    assert type(ours) is StableDiffusionXLPipeline
    return ours, theirs, path


CALLS: dict[str, dict[str, Any]] = {
    "plain": {"prompt": "a cat", "latents": noise()},
    "no guidance": {"prompt": "a cat", "latents": noise(), "guidance_scale": 1.0},
    "several": {
        "prompt": ["a cat", "the dog's dog"], "prompt_2": ["12", "a"], "negative_prompt": ["a dog", ""],
        "negative_prompt_2": ["cat", "cat"], "num_images_per_prompt": 2, "latents": noise(4), "guidance_scale": 3.0,
    },
    "sizes": {
        "prompt": "a cat", "latents": noise(1, 12, 4), "height": 24, "width": 8, "original_size": (100, 80),
        "crops_coords_top_left": (3, 5), "target_size": (64, 64), "negative_original_size": (9, 7),
        "negative_target_size": (5, 6), "negative_crops_coords_top_left": (1, 2),
    },
    "rescaled, skipped": {"prompt": "12", "latents": noise(), "guidance_rescale": 0.7, "clip_skip": 1},
    "a part of the way": {"prompt": "a", "latents": noise(), "denoising_end": 0.5, "num_inference_steps": 4},
    "embeds": {
        "prompt_embeds": drawn(1, shape=(2, 5, 20)), "negative_prompt_embeds": drawn(2, shape=(2, 5, 20)),
        "pooled_prompt_embeds": drawn(3, shape=(2, 6)), "negative_pooled_prompt_embeds": drawn(4, shape=(2, 6)),
        "latents": noise(2),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_pictures_of_xl_are_those_of_diffusers(name: str, xl: tuple[Any, Any, pathlib.Path]) -> None:
    ours, theirs, _ = xl
    expected = pictures(theirs, torch.from_numpy, **CALLS[name])
    agree(pictures(ours, votive.from_numpy, **CALLS[name]), expected, name, 3e-5)


def test_empty_negative_texts_are_zeros_only_where_the_folder_says_so(xl: tuple[Any, Any, pathlib.Path]) -> None:
    ours, theirs, path = xl
    index = json.loads((path / "model_index.json").read_text())
    assert index["force_zeros_for_empty_prompt"] is True
    read = AutoPipelineForText2Image.from_pretrained(path, force_zeros_for_empty_prompt=False)
    again = diffusers.StableDiffusionXLPipeline(
        **theirs.components, force_zeros_for_empty_prompt=False, add_watermarker=False
    )
    again.set_progress_bar_config(disable=True)
    call = {"prompt": "a cat", "latents": noise()}
    got = pictures(read, votive.from_numpy, **call)
    agree(got, pictures(again, torch.from_numpy, **call), "read", 3e-5)
    assert not np.allclose(got, pictures(ours, votive.from_numpy, **call), atol=1e-5)


def test_a_run_of_xl_waits_and_goes_both_ways(xl: tuple[Any, Any, pathlib.Path], tmp_path: pathlib.Path) -> None:
    ours, theirs, _ = xl
    options = {"latents": votive.from_numpy(noise()), "num_inference_steps": 3}
    run = ours.denoise("a cat", **options)
    plain = run.finish()
    run.back(2)
    run.add_time_ids = run.add_time_ids + 5
    assert not votive.equal(run.finish(), plain)
    seen: list[tuple[str, ...]] = []

    def look(pipe: Any, step: int, t: Any, tensors: dict[str, Any]) -> dict[str, Any]:
        assert (pipe, step, float(t) >= 0) == (ours, len(seen), True)
        seen.append(tuple(tensors))
        return {"latents": run.latents}

    names = ["latents", "add_text_embeds", "add_time_ids"]
    out = ours(
        "a cat", output_type="latent", callback_on_step_end=look, callback_on_step_end_tensor_inputs=names, **options
    )
    assert seen == [tuple(names)] * 3
    assert votive.equal(out.images, run.latents)
    ours.save_pretrained(tmp_path)
    again = diffusers.StableDiffusionXLPipeline.from_pretrained(
        tmp_path, add_watermarker=False, low_cpu_mem_usage=False
    )
    again.set_progress_bar_config(disable=True)
    call = {"prompt": "a cat", "latents": noise()}
    agree(pictures(again, torch.from_numpy, **call), pictures(theirs, torch.from_numpy, **call), "saved here", 3e-5)


def test_half_precision_widens_for_the_autoencoder(xl: tuple[Any, Any, pathlib.Path]) -> None:
    pipe = AutoPipelineForText2Image.from_pretrained(xl[2], dtype="float16")
    images = pictures(pipe, lambda v: votive.from_numpy(v).half(), prompt="a cat", latents=noise())
    assert pipe.vae.dtype == votive.float16
    agree(images, pictures(xl[1], torch.from_numpy, prompt="a cat", latents=noise()), "float16", 0.02)


def test_wrong_calls_of_xl_say_what_to_do(
    xl: tuple[Any, Any, pathlib.Path],
    both: tuple[Any, Any],  # noqa: F811
    tmp_path: pathlib.Path,
) -> None:
    ours, _, path = xl
    few = {"num_inference_steps": 1, "output_type": "np"}
    with pytest.raises(ValueError, match="neither came"):
        ours(**few)
    with pytest.raises(ValueError, match="pooled_prompt_embeds come with"):
        ours(prompt_embeds=votive.ones(1, 5, 20), **few)
    with pytest.raises(ValueError, match="2 texts of prompt_2 came for 1"):
        ours("a", ["b", "c"], **few)
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        ours("a", denoising_end=2.0, **few)
    with pytest.raises(ValueError, match="come together"):
        ours("a", negative_original_size=(1, 1), **few)
    with pytest.raises(ValueError, match="no invisible watermark"):
        StableDiffusionXLPipeline(**ours.components, add_watermarker=True)
    with pytest.raises(ValueError, match="'text_time'"):
        StableDiffusionXLPipeline(**{**ours.components, "unet": both[0].unet})
    with pytest.raises(ValueError, match="parts are others"):
        StableDiffusionPipeline.from_pretrained(path)
    (tmp_path / "model_index.json").write_text(json.dumps({"_class_name": "KandinskyPipeline"}))
    with pytest.raises(ValueError, match="is a KandinskyPipeline, for which there is none"):
        AutoPipelineForImage2Image.from_pretrained(tmp_path)
    with pytest.raises(ValueError, match="'text_time'"):
        StableDiffusionXLPipeline.from_pipe(both[0])
    with pytest.raises(TypeError, match="no part 'unett'"):
        StableDiffusionXLPipeline.from_pipe(ours, unett=None)
    with pytest.raises(TypeError, match="name the class"):
        DiffusionPipeline.from_pipe(ours)


def test_pipelines_for_a_use_share_parts(both: tuple[Any, Any]) -> None:  # noqa: F811
    ours = both[0]
    other = AutoPipelineForImage2Image.from_pipe(ours)
    assert type(other) is StableDiffusionImg2ImgPipeline
    assert other.unet is ours.unet
    again = AutoPipelineForText2Image.from_pipe(other, text_encoder=None, tokenizer=None)
    assert type(again) is StableDiffusionPipeline
    with pytest.raises(ValueError, match="without text_encoder and tokenizer texts cannot be read"):
        again("a cat", num_inference_steps=1)


BEGUN: dict[str, dict[str, Any]] = {
    "pixels": {"prompt": "a cat", "strength": 0.75, "num_inference_steps": 4},
    "several": {
        "prompt": ["a cat", "12"], "negative_prompt": ["a dog", "a"], "num_images_per_prompt": 2, "strength": 0.5,
        "num_inference_steps": 4, "guidance_scale": 4.0, "original_size": (32, 48), "target_size": (16, 16),
    },
    "from where another ended": {"prompt": "a", "denoising_start": 0.5, "num_inference_steps": 4},
    "a part": {"prompt": "a", "denoising_start": 0.25, "denoising_end": 0.75, "num_inference_steps": 8},
    "given": {"prompt": "a", "latents": drawn(7, shape=(1, 4, 8, 10)), "num_inference_steps": 4, "strength": 0.5},
}  # fmt: skip


@pytest.mark.parametrize("name", BEGUN)
def test_pictures_of_xl_that_begin_with_one_are_those_of_diffusers(
    name: str, xl: tuple[Any, Any, pathlib.Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from diffusers.models.autoencoders import vae as their_vae
    from diffusers.pipelines.stable_diffusion_xl import pipeline_stable_diffusion_xl_img2img as their_pipeline

    from votive.models.diffusion import gaussian, stable_diffusion_img2img

    draws = [0, 0]

    def their_draw(shape: Any, *args: Any, **kwargs: Any) -> Any:
        draws[0] += 1
        return torch.from_numpy(drawn(draws[0], shape=tuple(shape)))

    def our_draw(shape: Any, *args: Any, **kwargs: Any) -> Any:
        draws[1] += 1
        return votive.from_numpy(drawn(draws[1], shape=tuple(shape)))

    for module in (their_vae, their_pipeline):
        monkeypatch.setattr(module, "randn_tensor", their_draw)
    for module in (gaussian, stable_diffusion_img2img):
        monkeypatch.setattr(module, "randn", our_draw)
    ours = AutoPipelineForImage2Image.from_pipe(xl[0])
    theirs = diffusers.StableDiffusionXLImg2ImgPipeline(**xl[1].components, add_watermarker=False)
    theirs.set_progress_bar_config(disable=True)
    image = np.random.default_rng(0).random((1, 16, 20, 3)).astype(np.float32)
    call = BEGUN[name]
    made = {k: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in call.items()}
    expected = theirs(image=image, output_type="np", **made).images
    made = {k: votive.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in call.items()}
    agree(ours(image=image, output_type="np", **made).images, expected, name, 3e-5)
    assert draws[0] == draws[1]
    run = ours.denoise(image=image, **made)
    assert not run.done
    with pytest.raises(ValueError, match="give an image"):
        ours("a")
    with pytest.raises(ValueError, match="between 0 and 1"):
        ours("a", image=image, denoising_start=1.5)


def test_the_refiner_is_told_how_beautiful_a_picture_is(
    xl: tuple[Any, Any, pathlib.Path], tmp_path: pathlib.Path
) -> None:
    theirs = xl[1]
    torch.manual_seed(3)
    unet = diffusers.UNet2DConditionModel(
        **SMALL | {
            "cross_attention_dim": 12, "addition_embed_type": "text_time", "addition_time_embed_dim": 4,
            "projection_class_embeddings_input_dim": 20 + 6,
        }
    ).eval()  # fmt: skip
    refiner = diffusers.StableDiffusionXLImg2ImgPipeline(
        **{**theirs.components, "unet": unet, "text_encoder": None, "tokenizer": None},
        requires_aesthetics_score=True, force_zeros_for_empty_prompt=False, add_watermarker=False,
    )  # fmt: skip
    refiner.save_pretrained(tmp_path)
    for name in ("vocab.json", "merges.txt", "tokenizer_config.json"):
        (tmp_path / "tokenizer_2" / name).write_bytes((xl[2] / "tokenizer_2" / name).read_bytes())
    (tmp_path / "tokenizer_2" / "tokenizer.json").unlink(missing_ok=True)
    read = DiffusionPipeline.from_pretrained(tmp_path)
    assert read.requires_aesthetics_score
    assert read.text_encoder is None
    refiner.set_progress_bar_config(disable=True)
    latents = drawn(5, shape=(1, 4, 8, 8))
    call = {
        "prompt": "a cat", "denoising_start": 0.5, "num_inference_steps": 4, "output_type": "np",
        "aesthetic_score": 7.0, "negative_aesthetic_score": 1.5,
    }  # fmt: skip
    expected = refiner(image=torch.from_numpy(latents), **call).images
    agree(read(image=votive.from_numpy(latents), **call).images, expected, "refined", 3e-5)
    plain = type(read)(**read.components)
    with pytest.raises(ValueError, match="requires_aesthetics_score"):
        plain(image=votive.from_numpy(latents), **call)


@pytest.fixture(scope="module")
def checkers(tmp_path_factory: Any) -> tuple[Any, Any, pathlib.Path]:
    """The checker in both libraries, and its folder: random concepts, about as near to pictures as thresholds ask."""
    from diffusers.pipelines.stable_diffusion.safety_checker import StableDiffusionSafetyChecker as Theirs

    torch.manual_seed(0)
    vision = {**WIDTHS, "image_size": 16, "patch_size": 8, "projection_dim": 6}
    theirs = Theirs(transformers.CLIPConfig(vision_config=vision, projection_dim=6)).eval()
    with torch.no_grad():
        theirs.concept_embeds.copy_(torch.randn(17, 6))
        theirs.special_care_embeds.copy_(torch.randn(3, 6))
        theirs.concept_embeds_weights.copy_(0.5 + 0.4 * torch.rand(17))
        theirs.special_care_embeds_weights.copy_(0.2 * torch.rand(3))
        theirs.visual_projection.weight.mul_(5)
    path = tmp_path_factory.mktemp("checker")
    theirs.save_pretrained(path)
    return StableDiffusionSafetyChecker.from_pretrained(path), theirs, path


def test_the_checker_judges_as_diffusers_does(checkers: tuple[Any, Any, pathlib.Path], tmp_path: pathlib.Path) -> None:
    ours, theirs, _ = checkers
    seen = np.concatenate([drawn(i, shape=(1, 3, 16, 16)) * (i + 1) for i in range(40)])
    images = drawn(9, shape=(40, 3, 4, 4))
    black, expected = theirs(clip_input=torch.from_numpy(seen), images=torch.from_numpy(images.copy()))
    assert 0 < sum(expected) < 40
    with pytest.warns(UserWarning, match="may not be fit to show"):
        got, unfit = ours(clip_input=votive.from_numpy(seen), images=votive.from_numpy(images))
    assert unfit == expected
    agree(got, black)
    ours.save_pretrained(tmp_path)
    again = type(theirs).from_pretrained(tmp_path)
    assert again(clip_input=torch.from_numpy(seen), images=torch.from_numpy(images.copy()))[1] == expected


def test_unfit_pictures_come_out_black(
    checkers: tuple[Any, Any, pathlib.Path],
    folder: pathlib.Path,  # noqa: F811
    tmp_path: pathlib.Path,
) -> None:
    pytest.importorskip("PIL.Image", reason="the checker looks at pillow's pictures")
    ours = StableDiffusionPipeline.from_pretrained(folder)
    assert ours("a", num_inference_steps=1, output_type="np").nsfw_content_detected is None
    with pytest.raises(ValueError, match="feature_extractor makes of pictures"):
        StableDiffusionPipeline.from_pretrained(folder, safety_checker=checkers[0])
    processor = votive.models.CLIPImageProcessor(size={"shortest_edge": 16}, crop_size=16)
    judged = StableDiffusionPipeline.from_pipe(ours, safety_checker=checkers[0], feature_extractor=processor)
    judged.save_pretrained(tmp_path)
    again = DiffusionPipeline.from_pretrained(tmp_path)
    assert type(again.safety_checker) is StableDiffusionSafetyChecker
    theirs = diffusers.StableDiffusionPipeline.from_pretrained(tmp_path, low_cpu_mem_usage=False)
    theirs.set_progress_bar_config(disable=True)
    for threshold in (2.0, -2.0):
        for checker in (again.safety_checker, theirs.safety_checker):
            checker.concept_embeds_weights.data.fill_(threshold)
        call = {"prompt": ["a cat", "12"], "num_inference_steps": 1, "output_type": "np"}
        expected = theirs(latents=torch.from_numpy(noise(2)), **call)
        with pytest.warns(UserWarning, match="2 of 2 pictures") if threshold < 0 else contextlib.nullcontext():
            got = again(latents=votive.from_numpy(noise(2)), **call)
        assert got.nsfw_content_detected == expected.nsfw_content_detected == [threshold < 0] * 2
        agree(got.images, expected.images, "checked", 3e-5)
        assert got.images.any() == (threshold > 0)

    def blurred(images: Any, clip_input: Any) -> tuple[Any, list[bool]]:
        assert clip_input.shape == (1, 3, 16, 16)
        return images * 0 + 0.25, [True]

    own = StableDiffusionPipeline.from_pipe(again, safety_checker=blurred)
    out = own("a cat", num_inference_steps=1, output_type="pt")
    assert out.nsfw_content_detected == [True]
    assert votive.equal(out.images, votive.full_like(out.images, 0.25))
