"""What audio and vision need of the GPU: kernels agree with the CPU's, and whole functions leave it
for nothing but what NVIDIA's libraries compute.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import votive
from votive.audio import functional as A
from votive.nn import functional as NF
from votive.ops.registry import OPS, F
from votive.vision import ops
from votive.vision.transforms import functional as V

from .libraries import solvers, transforms

rng = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def _noticed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leaving the GPU is an error."""
    from votive.backends.cuda import cpu_fallback

    monkeypatch.setattr(cpu_fallback, "_warned", set())
    with solvers(), transforms(), warnings.catch_warnings():
        warnings.simplefilter("error", cpu_fallback.CpuFallbackWarning)
        yield


def real(*shape: int, dtype: str = "float64") -> Any:
    return votive.tensor(rng.standard_normal(shape)).to(getattr(votive, dtype))


def agree(fn: Callable[..., Any], *given: Any, tolerance: float = 1e-10) -> None:
    """The same on both devices, gradients by all floats included."""
    found = []
    for device in ("cpu", "cuda"):
        args = [v.detach().to(device) if isinstance(v, votive.Tensor) else v for v in given]
        floats = [v.requires_grad_() for v in args if isinstance(v, votive.Tensor) and v.dtype.is_floating_point]
        y = fn(*args)
        assert y.device.type == device
        values = [y.detach()]
        if y.dtype.is_floating_point and y.requires_grad and y.numel():
            weight = votive.linspace(-1, 1, y.numel(), device=device, dtype=votive.float64)
            weight = weight.reshape(y.shape).to(y.dtype)
            grads = votive.autograd.grad((y * weight).sum(), floats, allow_unused=True)
            values += [g for g in grads if g is not None]
        found.append([v.cpu() for v in values])
    for one, other in zip(*found, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        if not one.dtype.is_floating_point:
            assert votive.equal(one, other)
            continue
        a, b = (t.double().numpy() for t in (one, other))
        size = max(float(np.abs(a).max(initial=0)), 1e-30)
        np.testing.assert_allclose(b / size, a / size, rtol=0, atol=tolerance)


@pytest.mark.parametrize(("order", "time"), [(1, 30), (2, 1), (2, 45), (3, 20), (5, 45)])
def test_filters(order: int, time: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from votive.backends.cuda.kernels import lfilter

    # Signals that are cut, at a size that an emulated GPU can run.
    monkeypatch.setattr(lfilter, "LONG", 40)
    monkeypatch.setattr(lfilter, "CHUNK", 16)
    OPS["_lfilter"].forget()
    signals = real(2, 3, time).transpose(0, 1)
    for reverse in (False, True):
        a, b = real(2, order) * 0.3, real(2, order)
        agree(F._lfilter, signals, a, b, reverse)
        one = [t.float() for t in (real(3, 2, time), a, b)]
        agree(F._lfilter, *one, reverse, tolerance=1e-5)
    OPS["_lfilter"].forget()


def test_echoes_that_come_back() -> None:
    gain = votive.tensor(rng.uniform(-0.4, 0.4, (2, 3, 15)))
    lag = votive.tensor(rng.integers(1, 9, (2, 3, 15)))
    for transposed in (False, True):
        agree(F._delay_feedback, real(2, 3, 15), gain, lag, transposed)
        half = (real(2, 3, 15, dtype="bfloat16"), gain.bfloat16(), lag, transposed)
        agree(F._delay_feedback, *half, tolerance=2e-2)
    late = F._delay_feedback(real(1, 3, 15).cuda(), gain.cuda(), votive.zeros_like(lag).cuda(), False)
    with pytest.raises(ValueError, match="at least 1"):
        late.cpu()


@pytest.mark.parametrize("rates", [(3, 2), (2, 3), (1, 4), (5, 1)])
def test_resampling(rates: tuple[int, int]) -> None:
    orig, new = rates
    length = -(-61 * new // orig)
    for offset, taps in ((4, 9), (0, 3)):
        agree(F._polyphase, real(2, 61), real(new, taps), orig, offset, length)
        agree(F._polyphase_transposed, real(2, length), real(new, taps), orig, offset, 61)
    agree(F._polyphase, real(61, 2).t(), real(9, new).t(), orig, 4, length)


@pytest.mark.parametrize("count", [0, 1, 33, 100])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_same_boxes_survive(count: int, dtype: str) -> None:
    for threshold in (0.0, 0.3, 0.5, 1.0):
        corner, side = rng.uniform(0, 30, (count, 2)), rng.uniform(1, 20, (count, 2))
        # Whole numbers make overlaps that equal the threshold.
        boxes = np.round(np.concatenate((corner, corner + side), 1))
        group = votive.tensor(rng.integers(0, 3, count))
        given = votive.tensor(boxes).to(getattr(votive, dtype))
        agree(lambda b, g, t: F._survivors(b.detach(), g, t), given, group, threshold)


def test_maxima_and_sums_of_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    from votive.backends.cuda.kernels import detection

    monkeypatch.setattr(detection, "SHARE", 2)
    x, image = real(2, 3, 9, 8), votive.tensor(rng.integers(0, 2, 5))
    top, left = (votive.tensor(rng.integers(0, 4, (5, n))) for n in (3, 2))
    bottom, right = (t + votive.tensor(rng.integers(0, 5, tuple(t.shape))) for t in (top, left))
    odd = x.clone()
    odd[0, 0, 3, 3] = float("nan")
    for values in (x, odd, votive.zeros_like(x)):
        run = lambda x, *edges: F._region_argmax(x.detach(), *edges)
        agree(run, values, image, top, bottom, left, right)
    by_row = real(5, 3, 9) * (real(5, 3, 9) > 0.5)
    by_column = real(5, 2, 8) * (real(5, 2, 8) > 0.5)
    by_row[0, 0] = 0
    for turn in (lambda t: t, lambda t: t.contiguous(memory_format=votive.channels_last)):
        agree(lambda x, i, r, c: F._region_sums(x, i, r.detach(), c.detach()), turn(x), image, by_row, by_column)
    agree(
        lambda g, i, r, c: F._region_sums_transpose(g, i, r.detach(), c.detach(), 2),
        real(5, 3, 3, 2),
        image,
        by_row,
        by_column,
    )


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("antialias", [True, False])
def test_bytes_are_resized_as_on_the_cpu(mode: str, antialias: bool) -> None:
    picture = votive.tensor(rng.integers(0, 256, (2, 3, 20, 30)).astype(np.uint8))
    for size in ((11, 41), (20, 7)):
        agree(lambda x, s=size: NF.interpolate(x, s, mode=mode, antialias=antialias), picture)


GRIDS = [
    (mode, padding, align, deep)
    for mode in ("bilinear", "nearest", "bicubic")
    for padding, align in (("zeros", False), ("border", True), ("reflection", False))
    for deep in (False, True)
    if not (deep and mode == "bicubic")
]


@pytest.mark.parametrize(("mode", "padding", "align", "deep"), GRIDS)
def test_positions_are_sampled(mode: str, padding: str, align: bool, deep: bool) -> None:
    x, places = (real(2, 2, 3, 4, 5), (2, 3, 2, 4, 3)) if deep else (real(2, 2, 4, 5), (2, 5, 6, 2))
    grid = votive.tensor(rng.uniform(-1.7, 1.7, places))
    agree(NF.grid_sample, x, grid, mode, padding, align)
    if mode == "bilinear" and padding == "zeros":
        turned = x.transpose(0, 1).contiguous().transpose(0, 1)
        agree(NF.grid_sample, turned, grid[:1].expand(places), mode, padding, align)


@pytest.mark.parametrize("size", [(2, 1, 5, 300), (1, 1, 3, 4, 5), (1, 1, 1, 1)])
def test_grids_are_made(size: tuple[int, ...]) -> None:
    n = len(size) - 2
    for align in (True, False):
        agree(NF.affine_grid, real(size[0], n, n + 1), size, align)


SOUND = real(2, 120, dtype="float32") * 0.1
SOUNDS: dict[str, Callable[[Any], Any]] = {
    "lowpass_biquad": lambda x: A.lowpass_biquad(x, 16000, 1000.0),
    "bass_biquad": lambda x: A.bass_biquad(x, 16000, 6.0),
    "filtfilt": lambda x: A.filtfilt(
        x, *(votive.tensor(v, device=x.device) for v in ([1.0, -0.3, 0.1], [0.5, 0.2, 0.1]))
    ),
    "deemphasis": A.deemphasis,
    "preemphasis": A.preemphasis,
    "resample": lambda x: A.resample(x, 16000, 11025),
    "flanger": lambda x: A.flanger(x, 16000),
    "phaser": lambda x: A.phaser(x, 16000),
    "mu_law": lambda x: A.mu_law_decoding(A.mu_law_encoding(x, 256), 256),
    "amplitude_to_DB": lambda x: A.amplitude_to_DB(x.abs(), 10.0, 1e-10, 0.0, 80.0),
    "compute_deltas": lambda x: A.compute_deltas(x.reshape(1, 8, 30)),
    "sliding_window_cmn": lambda x: A.sliding_window_cmn(x.reshape(1, 30, 8), 10, 3),
    "convolve": lambda x: A.convolve(x, x[:, :9]),
    "overdrive": A.overdrive,
    "contrast": A.contrast,
    "gain": A.gain,
    "dcshift": lambda x: A.dcshift(x, 0.1, 0.05),
    "spectrogram": lambda x: A.spectrogram(x, 0, votive.hann_window(32, device=x.device), 32, 16, 32, 2.0, False),
}


@pytest.mark.parametrize("name", SOUNDS)
def test_sounds_stay_on_the_gpu(name: str) -> None:
    agree(SOUNDS[name], SOUND, tolerance=1e-4)


PICTURE = votive.tensor(rng.integers(0, 256, (3, 12, 14)).astype(np.uint8))
PICTURES: dict[str, Callable[[Any], Any]] = {
    "resize": lambda x: V.resize(x, [7, 9], antialias=True),
    "rotate": lambda x: V.rotate(x, 20.0, V.InterpolationMode.BILINEAR),
    "affine": lambda x: V.affine(x, 10.0, [1, 2], 1.1, [3.0], fill=[1, 2, 3]),
    "perspective": lambda x: V.perspective(
        x, [[0, 0], [13, 0], [13, 11], [0, 11]], [[1, 1], [12, 0], [13, 10], [0, 11]]
    ),
    "gaussian_blur": lambda x: V.gaussian_blur(x, [3, 3]),
    "adjust_hue": lambda x: V.adjust_hue(x, 0.2),
    "adjust_contrast": lambda x: V.adjust_contrast(x, 1.4),
    "adjust_sharpness": lambda x: V.adjust_sharpness(x, 2.0),
    "posterize": lambda x: V.posterize(x, 3),
    "solarize": lambda x: V.solarize(x, 100.0),
    "equalize": V.equalize,
    "autocontrast": V.autocontrast,
    "horizontal_flip": V.horizontal_flip,
    "pad": lambda x: V.pad(x, [1, 2], padding_mode="reflect"),
    "crop": lambda x: V.crop(x, -2, 3, 9, 20),
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_stay_on_the_gpu(name: str) -> None:
    # Bytes at a half may be rounded to either side: sums are in another order.
    made = PICTURES[name](PICTURE.cuda())
    assert made.device.type == "cuda"
    ours, theirs = (t.cpu().to(votive.int64) for t in (made, PICTURES[name](PICTURE)))
    assert int((ours - theirs).abs().max()) <= 1
    assert int((ours != theirs).sum()) <= ours.numel() // 100


def test_regions_and_boxes_stay_on_the_gpu() -> None:
    x = real(2, 4, 12, 12, dtype="float32")
    boxes = votive.tensor([[0.0, 0, 8, 8], [2, 3, 9, 11], [1, 1, 4, 5]])
    rois = votive.cat((votive.tensor([[0.0], [1], [1]]), boxes), 1)
    agree(lambda x, r: ops.roi_align(x, r.detach(), 3, sampling_ratio=2), x, rois, tolerance=1e-5)
    agree(lambda x, r: ops.roi_pool(x, r.detach(), 3), x, rois, tolerance=1e-5)
    scores = votive.tensor([0.3, 0.9, 0.5])
    agree(lambda b, s: ops.nms(b.detach(), s.detach(), 0.1), boxes, scores)
    kinds = votive.tensor([0, 0, 1])
    agree(lambda b, s, k: ops.batched_nms(b.detach(), s.detach(), k, 0.1), boxes, scores, kinds)
    agree(ops.box_iou, boxes, boxes.clone() + 0.25, tolerance=1e-6)
