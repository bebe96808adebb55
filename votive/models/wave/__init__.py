"""Readers of recordings as samples: wav2vec 2.0 and its likes. A family is a configuration and its classes."""

from .classes import wave_classes
from .config import WaveConfig

__all__ = ["WaveConfig", "wave_classes"]
