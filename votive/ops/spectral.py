"""Spectra over time: stft and its inverse, from frames, windows and Fourier transforms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.errors import DtypeError, ShapeError, fail
from .fft import transformable
from .registry import F, composite
from .sizes import int_of
from .warning import warn

if TYPE_CHECKING:
    from .types import Tensor

# torch's bound below which overlapping squared windows count as zero.
_TINY = 1e-11


def _lengths(op: str, n_fft: float, hop_length: int | None, win_length: int | None) -> tuple[int, int, int]:
    n = int_of(op, "n_fft", n_fft)
    hop = n // 4 if hop_length is None else int_of(op, "hop_length", hop_length)
    win = n if win_length is None else int_of(op, "win_length", win_length)
    return n, hop, win


def _check_window(op: str, window: Tensor | None, n: int, win: int) -> None:
    if not 0 < win <= n:
        fail(ShapeError, op, f"win_length must lie in 1..n_fft={n}, got {win}.")
    if window is not None and tuple(window.shape) != (win,):
        fail(ShapeError, op, f"window must be a vector of win_length={win}, got shape {tuple(window.shape)}.")


def _centered(window: Tensor, n: int) -> Tensor:
    """A window with zeros on both sides, as long as a frame."""
    missing = n - window._spec.shape[0]
    return F.constant_pad_nd(window, (missing // 2, missing - missing // 2)) if missing else window


def _ones(like: Tensor, size: int) -> Tensor:
    return F.ones((size,), dtype=like.dtype.to_real(), device=like.device)


def _pad_signal(input: Tensor, n: int, mode: str) -> Tensor:
    """The signal with half a frame more on either side."""
    shape = tuple(input.shape)
    batched = input.view((1,) * (3 - input.ndim) + shape)
    padded = getattr(F, "nn.functional.pad")(batched, (n // 2, n // 2), mode)
    return padded.view((*shape[:-1], padded.shape[-1]))


def _wants_complex(op: str, is_complex: bool, return_complex: bool | None) -> bool:
    if return_complex is None:
        if not is_complex:
            fail(RuntimeError, op, "return_complex must be given for real inputs; pass True.")
        return True
    if not return_complex:
        warn("stft: return_complex=False is deprecated; use votive.view_as_real on the complex result.")
    return return_complex


@composite(autocast={"cpu": "float32"})
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """The short-time Fourier transform: spectra of overlapping, windowed frames of a signal.

    `X[f, t] = sum_k window[k] x[t hop + k] e^(-2 pi i f k / n_fft)`. With `center` the signal is
    first padded by half a frame, so that frame t is centered at `t hop`.

    >>> x = votive.tensor([1.0, 0.0, -1.0, 0.0]).repeat(2)
    >>> votive.stft(x, 4, 2, window=votive.ones(4), center=False, return_complex=True).abs()
    tensor([[0., 0., 0.],
            [2., 2., 2.],
            [0., 0., 0.]])
    """
    op = "stft"
    if center and align_to_window is not None:
        fail(RuntimeError, op, "align_to_window goes with center=False only.")
    n, hop, win = _lengths(op, n_fft, hop_length, win_length)
    if center:
        input = _pad_signal(input, n, pad_mode)
    if window is None:
        warn(
            "stft: no window was given, so a rectangular one is used, which leaks between "
            "frequencies; pass votive.hann_window(n_fft), or votive.ones(n_fft) to mean it."
        )
    is_complex = input.dtype.is_complex or (window is not None and window.dtype.is_complex)
    as_complex = _wants_complex(op, is_complex, return_complex)
    if not input.dtype.is_inexact:
        fail(DtypeError, op, f"takes floating-point or complex tensors, got {input.dtype}.")
    if input.ndim not in (1, 2):
        fail(ShapeError, op, f"takes a signal or a batch of them, got shape {tuple(input.shape)}.")
    if not 0 < n <= input.shape[-1]:
        fail(ShapeError, op, f"n_fft={n} does not fit into a signal of {input.shape[-1]}.")
    if hop <= 0:
        fail(RuntimeError, op, f"hop_length must be positive, got {hop}.")
    _check_window(op, window, n, win)
    if align_to_window:
        # Where the window is zero the signal need not exist.
        input = F.constant_pad_nd(input, ((n - win) // 2, n - win - (n - win) // 2))
    if window is None and win < n:
        window = _ones(input, win)
    frames = input.unfold(-1, n, hop)  # (..., frame, n)
    if window is not None:
        frames = frames * _centered(window, n)
    frames = transformable(op, frames)
    if is_complex and onesided:
        fail(RuntimeError, op, "a complex signal or window has no onesided spectrum.")
    power, last = (0.5 if normalized else 0.0), (frames.ndim - 1,)
    if is_complex or onesided is False:
        out = F._fft_c2c(frames, last, power, True)
    else:
        out = F._fft_r2c(frames, last, power)
    out = out.transpose(-1, -2)  # (..., frequency, frame)
    return out if as_complex else F.view_as_real(out)


def _overlapped(frames: Tensor, hop: int) -> Tensor:
    """Frames (batch, frame, n) added up at distance `hop`: (batch, length)."""
    batch, count, n = frames.shape
    length = n + hop * (count - 1)
    return F._into_window(frames, (batch, length), (length, hop, 1), 0)


def _check_spectrum(op: str, input: Tensor, n: int, onesided: bool | None) -> bool:
    """Whether the spectrum is onesided, after checking that its shape fits n_fft."""
    if not input.dtype.is_complex:
        fail(DtypeError, op, f"takes the complex result of stft, got {input.dtype}.")
    if input.ndim not in (2, 3):
        kind = IndexError if input.ndim < 2 else ShapeError
        fail(kind, op, f"takes (frequency, frame) or (batch, frequency, frame), got shape {tuple(input.shape)}.")
    if input.numel() == 0:
        fail(ShapeError, op, f"the input must not be empty, got shape {tuple(input.shape)}.")
    have = input.shape[-2]
    half = have != n if onesided is None else onesided
    wanted = n // 2 + 1 if half else n
    if have != wanted:
        fail(ShapeError, op, f"n_fft={n} with onesided={half} needs {wanted} frequencies, got {have}.")
    return half


@composite
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The inverse of `stft`: windowed frames added up, divided by the sum of squared windows.

    This is the least-squares estimate of Griffin and Lim 1984, equation 6.

    >>> w = votive.hann_window(4)
    >>> x = votive.stft(votive.arange(8.0), 4, window=w, return_complex=True)
    >>> votive.istft(x, 4, window=w)
    tensor([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    op = "istft"
    if window is None:
        warn("istft: no window was given, so a rectangular one is used; pass the window of stft.")
    n, hop, win = _lengths(op, n_fft, hop_length, win_length)
    half = _check_spectrum(op, input, n, onesided)
    if not 0 < hop <= win:
        fail(RuntimeError, op, f"hop_length must lie in 1..win_length={win}, got {hop}.")
    _check_window(op, window, n, win)
    if return_complex and half:
        fail(RuntimeError, op, "a onesided spectrum has a real signal; use return_complex=False.")
    if not return_complex and window is not None and window.dtype.is_complex:
        fail(RuntimeError, op, "a complex window needs return_complex=True.")
    w = _centered(_ones(input, win) if window is None else window, n)
    spectra = (input if input.ndim == 3 else input.unsqueeze(0)).transpose(1, 2)
    power = 0.5 if normalized else 1.0
    if return_complex:
        frames = F._fft_c2c(spectra, (2,), power, False)
    else:
        frames = F._fft_c2r(spectra.narrow(2, 0, n // 2 + 1), (2,), power, n)
    signal = _overlapped(frames * w, hop)
    weights = _overlapped((w * w).expand(1, frames.shape[1], n), hop)
    whole = signal.shape[1]
    start = n // 2 if center else 0
    end = start + length if length is not None else whole - start
    signal, weights = signal[:, start:end], weights[:, start:end]
    if not weights.is_meta and bool(weights.detach().abs().min() < _TINY):
        fail(
            RuntimeError,
            op,
            "the overlapping windows add up to zero somewhere; use a smaller hop_length, another "
            "window or center=True.",
        )
    signal = signal / weights
    if length is not None and end > whole:
        warn(f"istft: the frames hold fewer than length={length} samples; zeros fill the rest.")
        signal = F.constant_pad_nd(signal, (0, end - whole))
    return signal if input.ndim == 3 else signal.squeeze(0)
