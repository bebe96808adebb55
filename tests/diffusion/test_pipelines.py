"""Pipelines make diffusers' pictures from diffusers' folders; runs stop, change, and go back."""

from __future__ import annotations

import json
import pathlib
import warnings
from typing import Any

import numpy as np
import pytest

import votive
from votive import glass
from votive.models.diffusion import (
    DDIMPipeline,
    DDPMPipeline,
    DiffusionPipeline,
    StableDiffusionImg2ImgPipeline,
    StableDiffusionPipeline,
)  # fmt: skip

from ..text.test_clip_words import vocabulary
from .reference import agree, diffusers, drawn, torch
from .test_networks import SMALL

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")]
transformers = pytest.importorskip("transformers", reason="compares with transformers")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> pathlib.Path:
    """A small pipeline that diffusers wrote, with random weights."""
    path = tmp_path_factory.mktemp("pipeline")
    torch.manual_seed(0)
    words = vocabulary(tmp_path_factory.mktemp("words"))
    tokenizer = transformers.CLIPTokenizer.from_pretrained(words)
    text = transformers.CLIPTextModel(
        transformers.CLIPTextConfig(
            vocab_size=len(tokenizer), hidden_size=12, intermediate_size=16, num_hidden_layers=3,
            num_attention_heads=2, max_position_embeddings=16, eos_token_id=tokenizer.eos_token_id,
        )
    )  # fmt: skip
    vae = diffusers.AutoencoderKL(
        block_out_channels=(8, 8), norm_num_groups=4, sample_size=16, down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
    )  # fmt: skip
    pipe = diffusers.StableDiffusionPipeline(
        vae=vae,
        text_encoder=text.eval(),
        tokenizer=tokenizer,
        unet=diffusers.UNet2DConditionModel(**SMALL),
        scheduler=diffusers.DDIMScheduler(
            beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", clip_sample=False,
            set_alpha_to_one=False, steps_offset=1,
        ),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )  # fmt: skip
    pipe.save_pretrained(path)
    # As the folders of that time are: without a tokenizer.json.
    for name in ("vocab.json", "merges.txt", "tokenizer_config.json"):
        (path / "tokenizer" / name).write_bytes((words / name).read_bytes())
    (path / "tokenizer" / "tokenizer.json").unlink(missing_ok=True)
    return path


@pytest.fixture(scope="module")
def both(folder: pathlib.Path) -> tuple[Any, Any]:
    theirs = diffusers.StableDiffusionPipeline.from_pretrained(folder, safety_checker=None, low_cpu_mem_usage=False)
    theirs.set_progress_bar_config(disable=True)
    # Where it looks for the last norm; transformers 5 has it on the model itself.
    theirs.text_encoder.__dict__["text_model"] = theirs.text_encoder
    ours = DiffusionPipeline.from_pretrained(folder)
    assert type(ours) is StableDiffusionPipeline
    return ours, theirs


def noise(count: int = 1, height: int = 8, width: int = 8) -> Any:
    return drawn(4, shape=(count, 4, height, width))


def pictures(pipe: Any, make: Any, **options: Any) -> Any:
    """What a pipeline of either library makes of the same noise."""
    given = {k: make(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    return pipe(output_type="np", **{"num_inference_steps": 3, **given}).images


CALLS: dict[str, dict[str, Any]] = {
    "plain": {"prompt": "a cat", "latents": noise()},
    "no guidance": {"prompt": "a cat", "latents": noise(), "guidance_scale": 1.0},
    "several": {
        "prompt": ["a cat", "the dog's dog"], "negative_prompt": ["a dog", ""], "num_images_per_prompt": 2,
        "latents": noise(4), "guidance_scale": 3.0,
    },
    "rescaled": {"prompt": "12", "latents": noise(), "guidance_rescale": 0.7},
    "skip": {"prompt": "and", "latents": noise(), "clip_skip": 1},
    "sizes": {"prompt": "a cat", "latents": noise(1, 12, 4), "height": 24, "width": 8},
    "embeds": {
        "prompt_embeds": drawn(1, shape=(2, 5, 12)), "negative_prompt_embeds": drawn(2, shape=(2, 5, 12)),
        "latents": noise(2),
    },
}  # fmt: skip
SCHEDULERS = [
    "DDIMScheduler", "PNDMScheduler", "EulerDiscreteScheduler", "DPMSolverMultistepScheduler",
    "HeunDiscreteScheduler", "LMSDiscreteScheduler", "UniPCMultistepScheduler",
]  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_pictures_of_texts_are_those_of_diffusers(name: str, both: tuple[Any, Any]) -> None:
    ours, theirs = both
    got, expected = (pictures(p, m, **CALLS[name]) for p, m in ((ours, votive.from_numpy), (theirs, torch.from_numpy)))
    agree(got, expected, name, 3e-5)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_every_scheduler_leads_to_the_same_pictures(name: str, both: tuple[Any, Any]) -> None:
    ours, theirs = both
    kept = ours.scheduler, theirs.scheduler
    try:
        ours.scheduler = getattr(votive.models.diffusion, name).from_config(ours.scheduler.config)
        theirs.scheduler = getattr(diffusers, name).from_config(theirs.scheduler.config)
        call = {"prompt": "a cat", "latents": noise(), "num_inference_steps": 5}
        got, expected = (pictures(p, m, **call) for p, m in ((ours, votive.from_numpy), (theirs, torch.from_numpy)))
        agree(got, expected, name, 1e-4)
        run = ours.denoise("a cat", latents=votive.from_numpy(noise()), num_inference_steps=5)
        assert np.array_equal(run.images("latent").numpy(), noise() * np.float32(ours.scheduler.init_noise_sigma))
        run.run(2)
        kept_latents = run.latents
        run.finish()
        # Back and on again is the same, for schedulers that remember earlier steps too.
        agree(run.images("np"), expected, name, 1e-4)
        last = run.latents
        run.back(len(run) - 2)
        assert votive.equal(run.latents, kept_latents)
        assert votive.equal(run.finish(), last)
    finally:
        ours.scheduler, theirs.scheduler = kept


def test_pictures_that_begin_with_one_are_those_of_diffusers(both: tuple[Any, Any]) -> None:
    ours = StableDiffusionImg2ImgPipeline(**both[0].components)
    theirs = diffusers.StableDiffusionImg2ImgPipeline(**both[1].components, requires_safety_checker=False)
    theirs.set_progress_bar_config(disable=True)
    image = np.random.default_rng(0).random((1, 4, 8, 8)).astype(np.float32)  # latents: nothing is drawn for them
    from diffusers.pipelines.stable_diffusion import pipeline_stable_diffusion_img2img as module

    kept = module.randn_tensor
    g = votive.Generator().manual_seed(5)
    drawn_here = votive.randn(1, 4, 8, 8, generator=g).numpy()
    try:
        module.randn_tensor = lambda shape, **_: torch.from_numpy(drawn_here)
        call = {"prompt": "a cat", "strength": 0.6, "num_inference_steps": 5, "output_type": "np"}
        expected = theirs(image=torch.from_numpy(image), **call).images
    finally:
        module.randn_tensor = kept
    generator = votive.Generator().manual_seed(5)
    got = ours(image=votive.from_numpy(image), generator=generator, **call).images
    agree(got, expected, "img2img", 3e-5)
    run = ours.denoise("a cat", votive.from_numpy(image), 0.6, 5, generator=votive.Generator().manual_seed(5))
    assert len(run) == 3
    run.finish()
    agree(run.images("np"), expected, "run", 3e-5)
    pixels = ours("a cat", np.zeros((19, 17, 3), np.float32), num_inference_steps=2, output_type="np").images
    assert pixels.shape == (1, 18, 16, 3)
    with pytest.raises(ValueError, match="leaves none"):
        ours("a cat", votive.from_numpy(image), strength=0.1, num_inference_steps=2)
    with pytest.raises(ValueError, match="go below 0"):
        ours("a cat", -np.ones((8, 8, 3), np.float32), num_inference_steps=2)


def test_pictures_of_pil_are_read_as_diffusers_reads_them() -> None:
    image = pytest.importorskip("PIL.Image", reason="pictures of pillow")
    from diffusers.image_processor import VaeImageProcessor

    from votive.models.diffusion.pictures import read

    values = np.random.default_rng(0).integers(0, 256, (21, 19, 3)).astype(np.uint8)
    picture = image.fromarray(values)
    expected = VaeImageProcessor(vae_scale_factor=8).preprocess([picture, picture])
    agree(read([picture, picture], 8, 4), expected)
    array = np.random.default_rng(1).random((21, 19, 3)).astype(np.float32)
    agree(read(array, 8, 4), VaeImageProcessor(vae_scale_factor=8).preprocess(array))


@pytest.mark.parametrize("kind", ["ddpm", "ddim"])
def test_pictures_of_nothing_are_those_of_diffusers(kind: str, tmp_path: pathlib.Path) -> None:
    from diffusers.pipelines.ddim import pipeline_ddim
    from diffusers.pipelines.ddpm import pipeline_ddpm

    torch.manual_seed(1)
    unet = diffusers.UNet2DModel(
        sample_size=8, block_out_channels=(8, 8), norm_num_groups=4, layers_per_block=1,
        down_block_types=("DownBlock2D",) * 2, up_block_types=("UpBlock2D",) * 2,
    )  # fmt: skip
    if kind == "ddpm":
        theirs = diffusers.DDPMPipeline(unet, diffusers.DDPMScheduler(variance_type="fixed_small"))
    else:
        theirs = diffusers.DDIMPipeline(unet, diffusers.DDIMScheduler())
    theirs.set_progress_bar_config(disable=True)
    theirs.save_pretrained(tmp_path)
    ours = DiffusionPipeline.from_pretrained(tmp_path)
    assert type(ours) is (DDPMPipeline if kind == "ddpm" else DDIMPipeline)
    first = votive.randn(2, 3, 8, 8, generator=votive.Generator().manual_seed(3)).numpy()
    module = pipeline_ddpm if kind == "ddpm" else pipeline_ddim
    kept = module.randn_tensor
    try:
        module.randn_tensor = lambda shape, **_: torch.from_numpy(first)
        if kind == "ddpm":
            # Its noise is drawn in the scheduler: one step without noise is what both can do.
            expected = theirs(batch_size=2, num_inference_steps=1, output_type="np").images
            got = ours(2, votive.Generator().manual_seed(3), 1, output_type="np").images
        else:
            expected = theirs(batch_size=2, num_inference_steps=4, output_type="np").images
            got = ours(2, votive.Generator().manual_seed(3), num_inference_steps=4, output_type="np").images
    finally:
        module.randn_tensor = kept
    agree(got, expected, kind, 3e-5)


def test_runs_with_noise_of_their_own_go_back_exactly(both: tuple[Any, Any]) -> None:
    ours = both[0]
    for generator in (None, votive.Generator().manual_seed(1)):
        run = ours.denoise("a cat", num_inference_steps=4, eta=1.0, generator=generator)
        first = [run.step() for _ in range(4)]
        run.back(3)
        again = [run.step() for _ in range(3)]
        assert all(votive.equal(a, b) for a, b in zip(first[1:], again, strict=True))
    with pytest.raises(ValueError, match=r"0 to 4 steps, got 5"):
        run.back(5)
    with pytest.raises(ValueError, match="at its end"):
        run.step()


def test_a_run_can_be_looked_into_and_changed(both: tuple[Any, Any]) -> None:
    ours = both[0]
    latents = votive.from_numpy(noise())
    options = {"num_inference_steps": 4, "latents": latents}
    plain = ours.denoise("a cat", **options).finish()
    run = ours.denoise("a cat", **options)
    with glass.capture(ours.unet, "mid_block") as seen:
        run.step()
    assert seen["mid_block"].shape[0] == 2  # both sides of guidance
    assert run.clean is not None
    assert run.clean.shape == latents.shape
    # Another text from here on.
    other = ours.denoise("the dog", **options)
    run.prompt_embeds = other.prompt_embeds
    assert not votive.allclose(run.finish(), plain)
    # An edit of the network within one step.
    run.back(4)
    run.prompt_embeds = ours.denoise("a cat", **options).prompt_embeds
    with glass.patch(ours.unet, {"mid_block": lambda v: v * 0}) as receipt:
        run.step()
    assert receipt.sites["mid_block"].times == 1
    assert receipt.sites["mid_block"].largest > 0
    assert not votive.allclose(run.finish(), plain)
    # Noise given by hand, and none: as before.
    run.back(4)
    assert votive.equal(run.step(run.noise), ours.denoise("a cat", **options).step())
    for paused in run:
        assert paused is run
    assert votive.equal(run.latents, plain)
    with pytest.raises(ValueError, match=r"the shape \(1, 4, 8, 8\), got \(4,\)"):
        run.latents = votive.zeros(4)


def test_gradients_go_through_steps_where_asked(both: tuple[Any, Any]) -> None:
    ours = both[0]
    latents = votive.from_numpy(noise()).requires_grad_()
    run = ours.denoise("a cat", num_inference_steps=2, latents=latents, grad=True)
    run.finish().sum().backward()
    assert latents.grad is not None
    assert latents.grad.abs().sum() > 0
    assert not ours.denoise("a cat", num_inference_steps=1, latents=latents).finish().requires_grad
    for p in ours.unet.parameters():
        p.grad = None


def test_callbacks_see_and_replace_tensors_and_stop(both: tuple[Any, Any]) -> None:
    ours = both[0]
    seen: list[tuple[int, float, tuple[str, ...]]] = []

    def look(pipe: Any, step: int, t: Any, tensors: dict[str, Any]) -> dict[str, Any]:
        seen.append((step, t.item(), tuple(tensors)))
        pipe._interrupt = step == 1
        return {"latents": tensors["latents"] * 0}

    out = ours(
        "a cat", num_inference_steps=4, output_type="latent", callback_on_step_end=look,
        callback_on_step_end_tensor_inputs=["latents", "prompt_embeds"],
    )  # fmt: skip
    assert [s[0] for s in seen] == [0, 1]
    assert seen[0][2] == ("latents", "prompt_embeds")
    assert not out.images.any()
    with pytest.raises(ValueError, match="may have latents, prompt_embeds"):
        ours("a cat", callback_on_step_end=look, callback_on_step_end_tensor_inputs=["noise"])


def test_wrong_calls_say_what_to_do(both: tuple[Any, Any]) -> None:
    ours = both[0]
    few = {"num_inference_steps": 1, "output_type": "np"}
    with pytest.raises(ValueError, match="neither came"):
        ours(**few)
    with pytest.raises(ValueError, match="multiples of 8"):
        ours("a", height=12, width=8, **few)
    with pytest.raises(TypeError, match="negative_prompt is of the kind"):
        ours("a", negative_prompt=["b"], **few)
    with pytest.raises(ValueError, match="1 texts of negative_prompt came for 2"):
        ours(["a", "b"], negative_prompt=["c"], **few)
    with pytest.raises(ValueError, match=r"latents of the shape \(1, 4, 8, 8\)"):
        ours("a", latents=votive.zeros(1, 4, 8, 9), **few)
    with pytest.raises(ValueError, match="takes no sigmas"):
        ours("a", sigmas=[1.0, 0.5], **few)
    with pytest.raises(ValueError, match="output_type='gif' is not known"):
        ours("a", output_type="gif")
    with pytest.warns(UserWarning, match="cut after 16 tokens"):
        ours("cat " * 30, **few)


def test_folders_go_both_ways(both: tuple[Any, Any], tmp_path: pathlib.Path) -> None:
    ours = both[0]
    ours.save_pretrained(tmp_path)
    again = StableDiffusionPipeline.from_pretrained(tmp_path, dtype="float64")
    assert again.dtype == votive.float64
    theirs = diffusers.StableDiffusionPipeline.from_pretrained(tmp_path, safety_checker=None, low_cpu_mem_usage=False)
    theirs.set_progress_bar_config(disable=True)
    call = CALLS["plain"]
    agree(pictures(ours, votive.from_numpy, **call), pictures(theirs, torch.from_numpy, **call), "saved here", 3e-5)


def test_parts_that_are_not_here_are_told(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    import shutil

    there = tmp_path / "there"
    shutil.copytree(folder, there)
    index = json.loads((there / "model_index.json").read_text())
    checked = {**index, "safety_checker": ["stable_diffusion", "StableDiffusionSafetyChecker"]}
    (there / "model_index.json").write_text(json.dumps(checked))
    with pytest.raises(FileNotFoundError, match=r"has no folder safety_checker.*safety_checker=None to do without"):
        StableDiffusionPipeline.from_pretrained(there)
    assert StableDiffusionPipeline.from_pretrained(there, safety_checker=None).safety_checker is None
    with pytest.raises(TypeError, match="no part 'schedular'"):
        StableDiffusionPipeline.from_pretrained(there, schedular=None)
    (there / "model_index.json").write_text(json.dumps({**index, "scheduler": ["diffusers", "KDPM2Scheduler"]}))
    with pytest.raises(ValueError, match="KDPM2Scheduler, which is not here"):
        DiffusionPipeline.from_pretrained(there)
    (there / "model_index.json").write_text(json.dumps({**index, "_class_name": "FluxPipeline"}))
    with pytest.raises(ValueError, match="asks for FluxPipeline"):
        DiffusionPipeline.from_pretrained(there)


@pytest.mark.parametrize("count", [1, 2])
def test_pictures_that_begin_with_pixels_are_those_of_diffusers(
    count: int, both: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from diffusers.models.autoencoders import vae as their_vae
    from diffusers.pipelines.stable_diffusion import pipeline_stable_diffusion_img2img as their_pipeline

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
    ours = StableDiffusionImg2ImgPipeline(**both[0].components)
    theirs = diffusers.StableDiffusionImg2ImgPipeline(**both[1].components, requires_safety_checker=False)
    theirs.set_progress_bar_config(disable=True)
    image = np.random.default_rng(0).random((count, 16, 20, 3)).astype(np.float32)
    call = {
        "prompt": ["a cat", "12"], "strength": 0.75, "num_inference_steps": 4, "output_type": "np",
        "num_images_per_prompt": 2, "negative_prompt": ["a dog", "a"], "guidance_scale": 4.0,
    }  # fmt: skip
    with warnings.catch_warnings():
        # Where there are fewer pictures than texts it says that this will change.
        warnings.simplefilter("ignore", FutureWarning)
        expected = theirs(image=image, **call).images
    agree(ours(image=image, **call).images, expected, "pixels", 3e-5)
    assert draws == [2, 2]
