"""Sound: torchaudio's functionals and transforms, and files in and out.

Files and soxr need `pip install 'votive[audio]'`; everything else needs nothing more.
"""

from . import functional as functional
from . import transforms as transforms
from .io import AudioMetaData, info, load, save
from .streaming import Blocks, Writer, blocks

__all__ = ["AudioMetaData", "Blocks", "Writer", "blocks", "info", "load", "save"]
