"""The catalog: beamforming; importing this adds it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .cases import Side, case


def density(m: Side, seed: int) -> Any:
    """Hermitian and positive: (2, 5, 3, 3)."""
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((2, 5, 3, 3)) + 1j * rng.standard_normal((2, 5, 3, 3))
    return m.leaf(half @ half.conj().swapaxes(-1, -2) + 0.5 * np.eye(3))


def mask(m: Side, *shape: int, seed: int = 0) -> Any:
    return m.leaf(np.random.default_rng(seed).uniform(0.1, 0.9, shape))


def vector(m: Side) -> Any:
    return m.array(np.tile([0.0, 1.0, 0.0], (2, 1)))


SPECTRA = (2, 3, 5, 20)
# An eigenvector's phase is anybody's choice: what it does to a matrix is compared.
HERMITE = {"grad": False}

case("psd", lambda m: m.F.psd(m.spectra(*SPECTRA)))
case("psd", lambda m: m.F.psd(m.spectra(*SPECTRA), mask(m, 2, 5, 20)), "mask")
case("psd", lambda m: m.F.psd(m.spectra(*SPECTRA), mask(m, 2, 5, 20), False), "plain")
case("mvdr_weights_souden", lambda m: m.F.mvdr_weights_souden(density(m, 0), density(m, 1), 1))
case("mvdr_weights_souden", lambda m: m.F.mvdr_weights_souden(density(m, 0), density(m, 1), vector(m), False), "vector")
case("mvdr_weights_rtf", lambda m: m.F.mvdr_weights_rtf(m.spectra(2, 5, 3), density(m, 1)))
case("mvdr_weights_rtf", lambda m: m.F.mvdr_weights_rtf(m.spectra(2, 5, 3), density(m, 1), 2), "one")
case("mvdr_weights_rtf", lambda m: m.F.mvdr_weights_rtf(m.spectra(2, 5, 3), density(m, 1), vector(m)), "vector")
case("rtf_evd", lambda m: (lambda v: v[..., :, None] * v[..., None, :].conj())(m.F.rtf_evd(density(m, 0))), **HERMITE)
for _n in (1, 2, 4):
    case(
        "rtf_power",
        lambda m, n=_n: m.F.rtf_power(density(m, 0), density(m, 1), 0, n),
        str(_n),
        grad=_n > 1,  # by the noise it is zero, but for rounding
    )
case("rtf_power", lambda m: m.F.rtf_power(density(m, 0), density(m, 1), vector(m)), "vector")
case("apply_beamforming", lambda m: m.F.apply_beamforming(m.spectra(2, 5, 3), m.spectra(*SPECTRA)))

case("PSD", lambda m: m.T.PSD()(m.spectra(*SPECTRA), mask(m, 2, 5, 20)))
case("PSD", lambda m: m.T.PSD(True)(m.spectra(*SPECTRA), mask(m, *SPECTRA)), "multi")
case("SoudenMVDR", lambda m: m.T.SoudenMVDR()(m.spectra(*SPECTRA), density(m, 0), density(m, 1), 0))
case("RTFMVDR", lambda m: m.T.RTFMVDR()(m.spectra(*SPECTRA), m.spectra(2, 5, 3), density(m, 1), 0))


def _mvdr(m: Side, calls: int = 1, **how: Any) -> Any:
    made = m.T.MVDR(**how)
    shape = SPECTRA if how.get("multi_mask") else (2, 5, 20)
    for k in range(calls):
        out = made(m.spectra(*SPECTRA, seed=k), mask(m, *shape, seed=k), mask(m, *shape, seed=k + 9))
    return out


for _solution in ("ref_channel", "stv_evd", "stv_power"):
    case("MVDR", lambda m, s=_solution: _mvdr(m, solution=s, ref_channel=1), _solution, grad=False)
case("MVDR", lambda m: _mvdr(m, calls=3, online=True), "online", grad=False)
case("MVDR", lambda m: _mvdr(m, multi_mask=True, diag_loading=False), "multi", grad=False)
