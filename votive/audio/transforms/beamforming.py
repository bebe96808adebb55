"""Modules that hear several microphones as one."""

from __future__ import annotations

import votive
from votive import nn

from ...core.errors import fail
from ...ops.warning import warn
from ...tensor import Tensor
from .. import functional as F

_SOLUTIONS = ("ref_channel", "stv_evd", "stv_power")


class PSD(nn.Module):
    """The power spectral density between channels of (..., channel, frequency, time).

    With `multi_mask` there is a mask for each channel, of which the mean is taken.

    >>> spectra = votive.complex(votive.randn(2, 5, 9), votive.randn(2, 5, 9))
    >>> votive.audio.transforms.PSD()(spectra, votive.rand(5, 9)).shape
    votive.Size([5, 2, 2])
    """

    def __init__(self, multi_mask: bool = False, normalize: bool = True, eps: float = 1e-15) -> None:
        super().__init__()
        self.multi_mask, self.normalize, self.eps = multi_mask, normalize, eps

    def forward(self, specgram: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is not None and self.multi_mask:
            mask = mask.mean(dim=-3)
        return F.psd(specgram, mask, self.normalize, self.eps)


class SoudenMVDR(nn.Module):
    """MVDR from the densities of speech and of noise: (..., frequency, time).

    >>> spectra = votive.complex(votive.randn(2, 5, 9), votive.randn(2, 5, 9))
    >>> density = votive.audio.functional.psd(spectra)
    >>> votive.audio.transforms.SoudenMVDR()(spectra, density, density, 0).shape
    votive.Size([5, 9])
    """

    def forward(
        self,
        specgram: Tensor,
        psd_s: Tensor,
        psd_n: Tensor,
        reference_channel: int | Tensor,
        diagonal_loading: bool = True,
        diag_eps: float = 1e-7,
        eps: float = 1e-8,
    ) -> Tensor:
        weights = F.mvdr_weights_souden(psd_s, psd_n, reference_channel, diagonal_loading, diag_eps, eps)
        return F.apply_beamforming(weights, specgram)


class RTFMVDR(nn.Module):
    """MVDR from the relative transfer function and the density of noise: (..., frequency, time).

    >>> spectra = votive.complex(votive.randn(2, 5, 9), votive.randn(2, 5, 9))
    >>> density = votive.audio.functional.psd(spectra)
    >>> rtf = votive.audio.functional.rtf_evd(density)
    >>> votive.audio.transforms.RTFMVDR()(spectra, rtf, density, 0).shape
    votive.Size([5, 9])
    """

    def forward(
        self,
        specgram: Tensor,
        rtf: Tensor,
        psd_n: Tensor,
        reference_channel: int | Tensor,
        diagonal_loading: bool = True,
        diag_eps: float = 1e-7,
        eps: float = 1e-8,
    ) -> Tensor:
        weights = F.mvdr_weights_rtf(rtf, psd_n, reference_channel, diagonal_loading, diag_eps, eps)
        return F.apply_beamforming(weights, specgram)


class MVDR(nn.Module):
    """MVDR from masks of speech and of noise: (..., frequency, time).

    `solution` is `ref_channel`, `stv_evd` or `stv_power`; with `online` densities are those of all
    calls together.

    >>> spectra = votive.complex(votive.randn(2, 5, 9), votive.randn(2, 5, 9))
    >>> mask = votive.rand(5, 9)
    >>> votive.audio.transforms.MVDR()(spectra, mask, 1 - mask).shape
    votive.Size([5, 9])
    """

    psd_s: Tensor
    psd_n: Tensor
    mask_sum_s: Tensor
    mask_sum_n: Tensor

    def __init__(
        self,
        ref_channel: int = 0,
        solution: str = "ref_channel",
        multi_mask: bool = False,
        diag_loading: bool = True,
        diag_eps: float = 1e-7,
        online: bool = False,
    ) -> None:
        super().__init__()
        if solution not in _SOLUTIONS:
            names = ", ".join(_SOLUTIONS)
            fail(ValueError, "MVDR", f"solution must be one of {names}, got {solution!r}.")
        self.ref_channel, self.solution, self.multi_mask = ref_channel, solution, multi_mask
        self.diag_loading, self.diag_eps, self.online = diag_loading, diag_eps, online
        self.psd = PSD(multi_mask)
        for name in ("psd_s", "psd_n", "mask_sum_s", "mask_sum_n"):
            self.register_buffer(name, votive.zeros(1))  # one dimension: nothing heard yet

    def _accumulated(self, kind: str, density: Tensor, mask: Tensor) -> Tensor:
        """The density of all calls so far, of speech or of noise."""
        if self.multi_mask:
            mask = mask.mean(dim=-3)
        before, heard = getattr(self, f"psd_{kind}"), mask.sum(dim=-1)
        if before.ndim > 1:
            weight = getattr(self, f"mask_sum_{kind}")
            # As torchaudio does it: the new density, already a mean, is divided by the sum again.
            total = weight + heard
            density = before * (weight / total)[..., None, None] + density * (1 / total)[..., None, None]
            heard = total
        setattr(self, f"psd_{kind}", density)
        setattr(self, f"mask_sum_{kind}", heard)
        return density

    def _weights(self, psd_s: Tensor, psd_n: Tensor, reference: int | Tensor) -> Tensor:
        loading, eps = self.diag_loading, self.diag_eps
        if self.solution == "ref_channel":
            return F.mvdr_weights_souden(psd_s, psd_n, reference, loading, eps)
        if self.solution == "stv_evd":
            rtf = F.rtf_evd(psd_s)
        else:
            rtf = F.rtf_power(psd_s, psd_n, reference, diagonal_loading=loading, diag_eps=eps)
        return F.mvdr_weights_rtf(rtf, psd_n, reference, loading, eps)

    def forward(self, specgram: Tensor, mask_s: Tensor, mask_n: Tensor | None = None) -> Tensor:
        if specgram.ndim < 3:
            fail(ValueError, "MVDR", f"takes (..., channel, frequency, time), got shape {tuple(specgram.shape)}.")
        if not specgram.is_complex():
            fail(ValueError, "MVDR", f"takes complex spectra, got {specgram.dtype}.")
        if mask_n is None:
            warn("MVDR: mask_n is not given, so 1 - mask_s is used.")
            mask_n = 1 - mask_s
        x = specgram.to(votive.complex128)
        psd_s, psd_n = self.psd(x, mask_s), self.psd(x, mask_n)
        if self.online:
            psd_s, psd_n = self._accumulated("s", psd_s, mask_s), self._accumulated("n", psd_n, mask_n)
        reference = votive.zeros(x.shape[:-2], dtype=x.dtype, device=x.device)
        reference[..., self.ref_channel] = 1
        enhanced = F.apply_beamforming(self._weights(psd_s, psd_n, reference), x)
        return enhanced.to(specgram.dtype)
