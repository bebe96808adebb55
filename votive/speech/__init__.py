"""Speech to text: sound as mels, windows, rules of times, languages, words, files of subtitles."""

from .beginning import detect_language_ids
from .features import WhisperFeatureExtractor, log_mel_spectrogram
from .generating import generate
from .languages import LANGUAGES, language_code
from .processors import WhisperTimeStampLogitsProcessor
from .timing import dynamic_time_warping, median_filter
from .vocabulary import Vocabulary
