"""Tones: gamma, posterize, solarize, equalize, autocontrast, invert. One value at a time."""

from __future__ import annotations

from collections.abc import Callable

from ....core import dtype as dt
from ....ops.registry import F
from ....tensor import Tensor
from ...types import PILImage
from .color import bounded, check_channels, check_factor
from .conversion import max_value, to_dtype, value_bits
from .kernels import PIL, TENSOR, functional


@functional
def adjust_gamma(inpt: Tensor, gamma: float, gain: float = 1) -> Tensor:
    """`gain * image ** gamma`, in 0..1; gamma above 1 darkens the shadows.

    >>> votive.vision.transforms.functional.adjust_gamma(votive.tensor([[[0.5]]]), 2.0)
    tensor([[[0.2500]]])
    """
    check_factor("adjust_gamma", "gamma", gamma)
    kind = inpt.dtype
    image = inpt if kind.is_floating_point else to_dtype(inpt, dt.float32, scale=True)
    out = image**gamma
    if gain != 1:
        out = (out * gain).clamp(0, 1)
    return to_dtype(out, kind, scale=True)


@functional
def posterize(inpt: Tensor, bits: int) -> Tensor:
    """Only the first `bits` bits of each value.

    >>> image = votive.tensor([[[200, 100]]], dtype=votive.uint8)
    >>> votive.vision.transforms.functional.posterize(image, 1)
    tensor([[[128,   0]]], dtype=votive.uint8)
    """
    if not isinstance(bits, int) or not 0 <= bits <= 8:
        raise TypeError(f"posterize: bits must be an integer in 0..8, got {bits!r}.")
    if inpt.dtype.is_floating_point:
        levels = 1 << bits
        return F.floor(inpt * levels).clamp(0, levels - 1) * (1.0 / levels)
    have = value_bits("posterize", inpt.dtype)
    return inpt if bits >= have else F.bitwise_and(inpt, ((1 << bits) - 1) << (have - bits))


@functional
def invert(inpt: Tensor) -> Tensor:
    """White becomes black.

    >>> votive.vision.transforms.functional.invert(votive.tensor([[[0.25]]]))
    tensor([[[0.7500]]])
    """
    if inpt.dtype.is_floating_point:
        return 1.0 - inpt
    return F.bitwise_xor(inpt, (1 << value_bits("invert", inpt.dtype)) - 1)


@functional
def solarize(inpt: Tensor, threshold: float) -> Tensor:
    """Values from the threshold on inverted.

    >>> votive.vision.transforms.functional.solarize(votive.tensor([[[0.2, 0.8]]]), 0.5)
    tensor([[[0.2000, 0.2000]]])
    """
    if threshold > max_value(inpt.dtype):
        raise TypeError(
            f"solarize: threshold must be at most {max_value(inpt.dtype)} for {inpt.dtype}, got {threshold}."
        )
    return F.where(inpt >= threshold, invert.kernels[TENSOR](inpt), inpt)


@functional
def autocontrast(inpt: Tensor) -> Tensor:
    """Each channel stretched so that its darkest value is black and its lightest white.

    >>> votive.vision.transforms.functional.autocontrast(votive.tensor([[[0.25, 0.5]]]))
    tensor([[[0., 1.]]])
    """
    check_channels("autocontrast", inpt)
    if inpt.numel() == 0:
        return inpt
    wide = inpt if inpt.dtype.is_floating_point else inpt.float()
    low, high = F.amin(wide, (-2, -1), keepdim=True), F.amax(wide, (-2, -1), keepdim=True)
    flat = high == low
    step = F.where(flat, 1.0, (high - low) * (1.0 / max_value(inpt.dtype)))
    return bounded((wide - F.where(flat, 0.0, low)) / step, inpt.dtype)


@functional
def equalize(inpt: Tensor) -> Tensor:
    """Each channel with its values spread as evenly as possible, by Pillow's rule, in 256 steps.

    >>> image = votive.arange(0, 64, dtype=votive.uint8).reshape(1, 8, 8).repeat(1, 8, 8)
    >>> votive.vision.transforms.functional.equalize(image).max()
    tensor(255, dtype=votive.uint8)
    """
    if inpt.numel() == 0:
        return inpt
    image = to_dtype(inpt.detach(), dt.uint8, scale=True)
    flat = image.flatten(-2).long()
    shape = (*flat.shape[:-1], 256)
    counts = F.zeros(shape, dtype=dt.int64, device=image.device)
    counts = counts.scatter_add(-1, flat, F.ones_like(flat))
    total = F.cumsum(counts, -1)
    # The number of pixels without those of the lightest value that occurs, in 255 equal parts.
    last = F.argmax(total, -1, keepdim=True)
    step = F.div(flat.shape[-1] - F.gather(counts, -1, last), 255, rounding_mode="floor")
    table = F.div(total + F.div(step, 2, rounding_mode="floor"), step.clamp(min=1), rounding_mode="floor").clamp(0, 255)
    table = F.cat((F.zeros_like(table[..., :1]), table[..., :-1]), -1)
    out = F.gather(table, -1, flat).to(dt.uint8).reshape(tuple(image.shape))
    out = F.where((step != 0).unsqueeze(-1), out, image)  # too few pixels: as it was
    return to_dtype(out, inpt.dtype, scale=True)


def _by_ops(name: str) -> Callable[..., PILImage]:
    def pil(image: PILImage, *args: float, **options: float) -> PILImage:
        from PIL import ImageOps

        return getattr(ImageOps, name)(image, *(args or options.values()))

    return pil


for _fn in (posterize, solarize, autocontrast, equalize, invert):
    _fn.on(PIL)(_by_ops(_fn.__name__))


@adjust_gamma.on(PIL)
def _gamma_pil(image: PILImage, gamma: float, gain: float = 1) -> PILImage:
    check_factor("adjust_gamma", "gamma", gamma)
    table = [int((255 + 1 - 1e-3) * gain * pow(v / 255.0, gamma)) for v in range(256)]
    return image.convert("RGB").point(table * 3).convert(image.mode)
