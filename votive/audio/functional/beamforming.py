"""Several microphones heard as one: spectral densities and MVDR weights.

Spectra are complex, (..., channel, frequency, time); densities (..., frequency, channel, channel).
"""

from __future__ import annotations

import votive

from ...core.errors import fail
from ...tensor import Tensor
from .checks import check_complex, shapes


def psd(specgram: Tensor, mask: Tensor | None = None, normalize: bool = True, eps: float = 1e-10) -> Tensor:
    """The power spectral density between channels, `sum_t m[t] x[t] x[t]^H` for each frequency.

    `mask` (..., frequency, time) says how much of the wanted sound each place holds; `normalize`
    divides it by its sum over time.

    >>> spectra = votive.complex(votive.randn(2, 5, 9), votive.randn(2, 5, 9))
    >>> votive.audio.functional.psd(spectra).shape
    votive.Size([5, 2, 2])
    """
    x = specgram.transpose(-3, -2)  # (..., frequency, channel, time)
    if mask is None:
        return x @ x.conj().transpose(-1, -2)
    if mask.shape[:-1] != x.shape[:-2] or mask.shape[-1] != x.shape[-1]:
        fail(ValueError, "psd", f"mask must be (..., frequency, time) of the spectra, got {shapes(mask, specgram)}.")
    if normalize:
        mask = mask / (mask.sum(dim=-1, keepdim=True) + eps)
    return (x * mask.unsqueeze(-2)) @ x.conj().transpose(-1, -2)


def _check_densities(op: str, psd_s: Tensor, psd_n: Tensor) -> None:
    if psd_s.ndim < 3 or psd_n.ndim < 3:
        fail(ValueError, op, f"densities are (..., frequency, channel, channel), got {shapes(psd_s, psd_n)}.")
    check_complex(op, "densities", psd_s, psd_n)
    if psd_s.shape != psd_n.shape:
        fail(ValueError, op, f"densities differ in shape, {shapes(psd_s, psd_n)}.")
    if psd_s.shape[-1] != psd_s.shape[-2]:
        fail(ValueError, op, f"densities must be square, got shape {tuple(psd_s.shape)}.")


def _trace(matrix: Tensor) -> Tensor:
    return matrix.diagonal(0, -2, -1).sum(dim=-1)


def _loaded(matrix: Tensor, share: float) -> Tensor:
    """The matrix with some of its trace added to the diagonal, so that it can be solved with."""
    eye = votive.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    return matrix + (_trace(matrix).real[..., None, None] * share + 1e-8) * eye


def _of_channel(op: str, values: Tensor, channel: int | Tensor, between: int) -> Tensor:
    """What belongs to the reference: a number, or weights (..., channel) of all of them.

    `between` dimensions of `values` lie between those of the weights and the channels.
    """
    if isinstance(channel, int):
        return values[..., channel]
    if not isinstance(channel, Tensor):
        kind = type(channel).__name__
        fail(TypeError, op, f"reference_channel must be an int or a Tensor, got {kind}.")
    weights = channel.to(values.dtype)[(..., *[None] * between, slice(None))]
    return (values * weights).sum(dim=-1)


def mvdr_weights_souden(
    psd_s: Tensor,
    psd_n: Tensor,
    reference_channel: int | Tensor,
    diagonal_loading: bool = True,
    diag_eps: float = 1e-7,
    eps: float = 1e-8,
) -> Tensor:
    """MVDR weights (..., frequency, channel) from the densities of speech and of noise.

    `N^-1 S u / tr(N^-1 S)` (Souden et al. 2010, equation 18), with `u` the reference.

    >>> eye = votive.eye(2, dtype=votive.complex64).expand(3, 2, 2)
    >>> votive.audio.functional.mvdr_weights_souden(eye, eye, 0).shape
    votive.Size([3, 2])
    """
    op = "mvdr_weights_souden"
    _check_densities(op, psd_s, psd_n)
    noise = _loaded(psd_n, diag_eps) if diagonal_loading else psd_n
    ratio = votive.linalg.solve(noise, psd_s)
    return _of_channel(op, ratio / (_trace(ratio)[..., None, None] + eps), reference_channel, 2)


def mvdr_weights_rtf(
    rtf: Tensor,
    psd_n: Tensor,
    reference_channel: int | Tensor | None = None,
    diagonal_loading: bool = True,
    diag_eps: float = 1e-7,
    eps: float = 1e-8,
) -> Tensor:
    """MVDR weights (..., frequency, channel) from the transfer function and the noise.

    `N^-1 v / (v^H N^-1 v)`, scaled to the reference if one is given.

    >>> eye = votive.eye(2, dtype=votive.complex64).expand(3, 2, 2)
    >>> votive.audio.functional.mvdr_weights_rtf(eye[..., 0], eye).shape
    votive.Size([3, 2])
    """
    op = "mvdr_weights_rtf"
    if rtf.ndim < 2 or psd_n.ndim < 3:
        fail(ValueError, op, f"needs rtf (..., frequency, channel) and densities, got {shapes(rtf, psd_n)}.")
    check_complex(op, "rtf and psd_n", rtf, psd_n)
    if rtf.shape != psd_n.shape[:-1] or psd_n.shape[-1] != psd_n.shape[-2]:
        fail(ValueError, op, f"rtf {tuple(rtf.shape)} and psd_n {tuple(psd_n.shape)} do not fit together.")
    noise = _loaded(psd_n, diag_eps) if diagonal_loading else psd_n
    solved = votive.linalg.solve(noise, rtf.unsqueeze(-1)).squeeze(-1)
    power = (rtf.conj() * solved).sum(dim=-1).real
    weights = solved / (power.unsqueeze(-1) + eps)
    if reference_channel is None:
        return weights
    return weights * _of_channel(op, rtf.conj(), reference_channel, 1).unsqueeze(-1)


def rtf_evd(psd_s: Tensor) -> Tensor:
    """The relative transfer function (..., frequency, channel): the main eigenvector of speech.

    >>> eye = votive.eye(2, dtype=votive.complex64).expand(3, 2, 2)
    >>> votive.audio.functional.rtf_evd(eye).shape
    votive.Size([3, 2])
    """
    check_complex("rtf_evd", "densities", psd_s)
    if psd_s.shape[-1] != psd_s.shape[-2]:
        fail(ValueError, "rtf_evd", f"densities must be square, got shape {tuple(psd_s.shape)}.")
    return votive.linalg.eigh(psd_s)[1][..., -1]


def rtf_power(
    psd_s: Tensor,
    psd_n: Tensor,
    reference_channel: int | Tensor,
    n_iter: int = 3,
    diagonal_loading: bool = True,
    diag_eps: float = 1e-7,
) -> Tensor:
    """The relative transfer function (..., frequency, channel), by `n_iter` power iterations.

    >>> eye = votive.eye(2, dtype=votive.complex64).expand(3, 2, 2)
    >>> votive.audio.functional.rtf_power(eye, eye, 0).shape
    votive.Size([3, 2])
    """
    op = "rtf_power"
    _check_densities(op, psd_s, psd_n)
    if n_iter <= 0:
        fail(ValueError, op, f"n_iter must be positive, got {n_iter}.")
    noise = _loaded(psd_n, diag_eps) if diagonal_loading else psd_n
    ratio = votive.linalg.solve(noise, psd_s)
    found = _of_channel(op, ratio, reference_channel, 2).unsqueeze(-1)
    for _ in range(n_iter - 2):
        found = ratio @ found
    # The first step is in `ratio`; the last goes back by the matrix that the solving left out.
    return ((psd_s if n_iter > 1 else noise) @ found).squeeze(-1)


def apply_beamforming(beamform_weights: Tensor, specgram: Tensor) -> Tensor:
    """Spectra (..., channel, frequency, time) joined by weights (..., frequency, channel).

    >>> spectra = votive.complex(votive.randn(2, 5, 9), votive.randn(2, 5, 9))
    >>> weights = votive.complex(votive.ones(5, 2), votive.zeros(5, 2)) / 2
    >>> votive.audio.functional.apply_beamforming(weights, spectra).shape
    votive.Size([5, 9])
    """
    op = "apply_beamforming"
    if beamform_weights.shape[:-2] != specgram.shape[:-3]:
        fail(ValueError, op, f"leading dimensions of weights and spectra differ, {shapes(beamform_weights, specgram)}.")
    check_complex(op, "weights and spectra", beamform_weights, specgram)
    x = specgram.transpose(-3, -2)  # (..., frequency, channel, time)
    return (beamform_weights.conj().unsqueeze(-2) @ x).squeeze(-2)
