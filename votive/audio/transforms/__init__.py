"""`votive.audio.transforms`: torchaudio's transforms, modules over `votive.audio.functional`."""

from .beamforming import MVDR, PSD, RTFMVDR, SoudenMVDR
from .features import (
    LFCC,
    MFCC,
    AmplitudeToDB,
    ComputeDeltas,
    InverseMelScale,
    MelScale,
    MelSpectrogram,
    SlidingWindowCmn,
)
from .masking import FrequencyMasking, SpecAugment, TimeMasking
from .spectral import GriffinLim, InverseSpectrogram, PitchShift, SpectralCentroid, Spectrogram, TimeStretch
from .vad import Vad
from .waveform import (
    AddNoise,
    Convolve,
    Deemphasis,
    Fade,
    FFTConvolve,
    Loudness,
    MuLawDecoding,
    MuLawEncoding,
    Preemphasis,
    Resample,
    Speed,
    SpeedPerturbation,
    Vol,
)

__all__ = [
    "Spectrogram", "InverseSpectrogram", "GriffinLim", "SpectralCentroid", "TimeStretch",
    "PitchShift",
    "AmplitudeToDB", "MelScale", "InverseMelScale", "MelSpectrogram", "MFCC", "LFCC",
    "ComputeDeltas", "SlidingWindowCmn",
    "FrequencyMasking", "TimeMasking", "SpecAugment",
    "Resample", "Speed", "SpeedPerturbation", "Vol", "Fade", "MuLawEncoding", "MuLawDecoding",
    "Loudness", "Vad", "Convolve", "FFTConvolve", "AddNoise", "Preemphasis", "Deemphasis",
    "PSD", "MVDR", "SoudenMVDR", "RTFMVDR",
]  # fmt: skip
