"""`votive.audio.functional`: what torchaudio.functional has, on tensors (..., time)."""

from .alignment import TokenSpan, forced_align, merge_tokens
from .banks import create_dct, linear_fbanks, melscale_fbanks
from .beamforming import apply_beamforming, mvdr_weights_rtf, mvdr_weights_souden, psd, rtf_evd, rtf_power
from .biquads import (
    allpass_biquad,
    band_biquad,
    bandpass_biquad,
    bandreject_biquad,
    bass_biquad,
    deemph_biquad,
    equalizer_biquad,
    highpass_biquad,
    lowpass_biquad,
    riaa_biquad,
    treble_biquad,
)
from .distance import edit_distance, frechet_distance
from .effects import contrast, dcshift, dither, overdrive
from .features import compute_deltas, detect_pitch_frequency, sliding_window_cmn
from .filtering import biquad, deemphasis, filtfilt, lfilter, preemphasis
from .levels import DB_to_amplitude, amplitude_to_DB, gain, loudness, mu_law_decoding, mu_law_encoding
from .masking import mask_along_axis, mask_along_axis_iid
from .mixing import add_noise, convolve, fftconvolve
from .modulation import flanger, phaser
from .resampling import resample, speed
from .spectrum import griffinlim, inverse_spectrogram, spectral_centroid, spectrogram
from .vad import vad
from .vocoder import phase_vocoder, pitch_shift

__all__ = [
    # filters
    "lfilter", "filtfilt", "biquad", "preemphasis", "deemphasis",
    "allpass_biquad", "band_biquad", "bandpass_biquad", "bandreject_biquad", "bass_biquad",
    "deemph_biquad", "equalizer_biquad", "highpass_biquad", "lowpass_biquad", "riaa_biquad",
    "treble_biquad",
    # spectra
    "spectrogram", "inverse_spectrogram", "griffinlim", "phase_vocoder", "spectral_centroid",
    "melscale_fbanks", "linear_fbanks", "create_dct", "mask_along_axis", "mask_along_axis_iid",
    # features
    "compute_deltas", "sliding_window_cmn", "detect_pitch_frequency", "loudness", "vad",
    # levels
    "amplitude_to_DB", "DB_to_amplitude", "gain", "mu_law_encoding", "mu_law_decoding",
    # signals
    "resample", "speed", "pitch_shift", "convolve", "fftconvolve", "add_noise",
    "contrast", "dcshift", "dither", "overdrive", "flanger", "phaser",
    # microphones
    "psd", "mvdr_weights_souden", "mvdr_weights_rtf", "rtf_evd", "rtf_power", "apply_beamforming",
    # texts
    "edit_distance", "frechet_distance", "forced_align", "merge_tokens", "TokenSpan",
]  # fmt: skip
