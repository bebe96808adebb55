"""Parts of pictures are painted as diffusers paints them, by denoisers that see the rest and by those that do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive.models.diffusion import AutoPipelineForInpainting, StableDiffusionInpaintPipeline, UNet2DConditionModel

from .reference import agree, diffusers, drawn, torch
from .test_networks import SMALL
from .test_pipelines import both, folder, noise  # noqa: F401

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")]

IMAGE = np.random.default_rng(0).random((1, 16, 16, 3)).astype(np.float32)
MASK = np.zeros((1, 16, 16), np.float32)
MASK[:, 3:11, 5:] = 1
CALLS: dict[str, dict[str, Any]] = {
    "whole": {"prompt": "a cat"},
    "something stays": {"prompt": "a cat", "strength": 0.6},
    "several": {
        "prompt": ["a cat", "12"], "negative_prompt": ["a dog", "a"], "num_images_per_prompt": 2, "strength": 0.8,
        "guidance_scale": 3.0,
    },
    "given": {"prompt": "a", "latents": noise(), "guidance_scale": 1.0},
}  # fmt: skip


@pytest.fixture
def same_draws(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Both draw the same numbers, by their turn."""
    from diffusers.models.autoencoders import vae as their_vae
    from diffusers.pipelines.stable_diffusion import pipeline_stable_diffusion_inpaint as their_pipeline

    from votive.models.diffusion import gaussian, stable_diffusion_inpaint

    draws = [0, 0]

    def their_draw(shape: Any, *args: Any, **kwargs: Any) -> Any:
        draws[0] += 1
        return torch.from_numpy(drawn(draws[0], shape=tuple(shape)))

    def our_draw(shape: Any, *args: Any, **kwargs: Any) -> Any:
        draws[1] += 1
        return votive.from_numpy(drawn(draws[1], shape=tuple(shape)))

    for module in (their_vae, their_pipeline):
        monkeypatch.setattr(module, "randn_tensor", their_draw)
    for module in (gaussian, stable_diffusion_inpaint):
        monkeypatch.setattr(module, "randn", our_draw)
    return draws


@pytest.fixture(scope="module")
def painters(both: tuple[Any, Any], tmp_path_factory: Any) -> dict[str, tuple[Any, Any]]:  # noqa: F811
    """Pipelines of both libraries: with a usual denoiser, and with one that sees the mask and the rest."""
    path = tmp_path_factory.mktemp("nine")
    torch.manual_seed(5)
    nine = diffusers.UNet2DConditionModel(**SMALL | {"in_channels": 9}).eval()
    nine.save_pretrained(path)
    found = {}
    for name in ("four", "nine"):
        theirs = diffusers.StableDiffusionInpaintPipeline(
            **{**both[1].components, **({"unet": nine} if name == "nine" else {})}, requires_safety_checker=False
        )
        theirs.set_progress_bar_config(disable=True)
        own = {"unet": UNet2DConditionModel.from_pretrained(path)} if name == "nine" else {}
        found[name] = AutoPipelineForInpainting.from_pipe(both[0], **own), theirs
    return found


# Of all calls one scheduler, of all schedulers two calls.
CASES = [(name, "DDIMScheduler") for name in CALLS]
CASES += [
    (name, kind) for name in list(CALLS)[:2] for kind in ("EulerDiscreteScheduler", "DPMSolverMultistepScheduler")
]


@pytest.mark.parametrize(("name", "scheduler"), CASES)
@pytest.mark.parametrize("kind", ["four", "nine"])
def test_parts_of_pictures_are_those_of_diffusers(
    name: str, kind: str, scheduler: str, painters: dict[str, tuple[Any, Any]], same_draws: list[int]
) -> None:
    ours, theirs = painters[kind]
    ours.scheduler = getattr(votive.models.diffusion, scheduler).from_config(ours.scheduler.config)
    theirs.scheduler = getattr(diffusers, scheduler).from_config(theirs.scheduler.config)
    call = {"num_inference_steps": 5, "output_type": "np", **CALLS[name]}
    made = {k: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in call.items()}
    expected = theirs(image=torch.from_numpy(IMAGE).movedim(-1, 1), mask_image=torch.from_numpy(MASK), **made).images
    made = {k: votive.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in call.items()}
    got = ours(image=IMAGE, mask_image=MASK[0], **made).images
    agree(got, expected, f"{kind} {name}", 1e-4)


def test_a_run_keeps_the_rest_and_goes_back(painters: dict[str, tuple[Any, Any]]) -> None:
    ours, _ = painters["four"]
    assert type(ours) is StableDiffusionInpaintPipeline
    generator = votive.Generator().manual_seed(1)
    run = ours.denoise("a cat", IMAGE, MASK[0], num_inference_steps=4, generator=generator)
    assert run.mask.shape == (1, 1, 8, 8)
    run.run(2)
    at_two = run.latents
    plain = run.finish()
    kept = run.mask == 0
    assert votive.equal((plain * kept), (run.image_latents * kept))
    run.back(2)
    assert votive.equal(run.latents, at_two)
    # What was looked at before a change is asked anew.
    before = run.noise
    run.guidance_scale = 1.5
    assert not votive.equal(run.noise, before)
    run.mask = run.mask * 0
    assert votive.equal(run.finish(), run.image_latents)


def test_masks_of_all_kinds_are_one() -> None:
    image = pytest.importorskip("PIL.Image", reason="pictures of pillow")
    from diffusers.image_processor import VaeImageProcessor

    from votive.models.diffusion.pictures import read_mask

    processor = VaeImageProcessor(vae_scale_factor=8, do_normalize=False, do_binarize=True, do_convert_grayscale=True)
    picture = image.fromarray(np.random.default_rng(3).integers(0, 256, (21, 19, 3)).astype(np.uint8))
    agree(read_mask(picture, 16, 24), processor.preprocess(picture, 16, 24), "PIL")
    agree(read_mask([picture] * 2, 16, 16), processor.preprocess([picture] * 2, 16, 16), "two")
    expected = votive.from_numpy(MASK)[None]
    for mask in (MASK, MASK[0], MASK[0][..., None], votive.from_numpy(MASK), votive.from_numpy(MASK)[None]):
        assert votive.equal(read_mask(mask, 16, 16), expected)
    assert read_mask([MASK[0], MASK[0]], 8, 8).shape == (2, 1, 8, 8)
    for wrong, message in ((np.zeros((1, 4, 4, 3)), "one channel"), ("mask.png", "got str"), ([], "empty list")):
        with pytest.raises(ValueError, match=message):
            read_mask(wrong, 8, 8)


def test_wrong_calls_say_what_to_do(painters: dict[str, tuple[Any, Any]]) -> None:
    ours, _ = painters["four"]
    with pytest.raises(ValueError, match="give an image, and a mask_image"):
        ours("a cat", IMAGE)
    with pytest.raises(ValueError, match="leaves none"):
        ours("a cat", IMAGE, MASK, strength=0.1, num_inference_steps=2)
    with pytest.raises(ValueError, match="2 pictures or masks do not go into 1 texts"):
        ours("a cat", IMAGE, np.concatenate([MASK, MASK]), num_inference_steps=2)
    with pytest.raises(ValueError, match="give masked_image_latents"):
        painters["nine"][0]("a cat", votive.zeros(1, 4, 8, 8), MASK, num_inference_steps=2)
