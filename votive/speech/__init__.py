"""Speech to text: sound as mels, windows, rules of times, languages, words, files of subtitles."""

from ..models.whisper_languages import LANGUAGES, language_code
from ..models.whisper_vocabulary import Vocabulary
from .features import WhisperFeatureExtractor, log_mel_spectrogram
from .generating import generate
from .init_tokens import detect_language_ids
from .letters import Span, Wav2Vec2CTCTokenizer
from .processors import WhisperTimeStampLogitsProcessor
from .sound import load_audio
from .tiktoken import from_tiktoken
from .timing import dynamic_time_warping, median_filter
from .token_stream import Token
from .transcribing import Transcriber, transcribe
from .transcript import Segment, Transcript, Word
from .wave_processor import Wav2Vec2Processor
from .waves import Wav2Vec2FeatureExtractor

__all__ = [
    "LANGUAGES",
    "Segment",
    "Span",
    "Token",
    "Transcriber",
    "Transcript",
    "Vocabulary",
    "Wav2Vec2CTCTokenizer",
    "Wav2Vec2FeatureExtractor",
    "Wav2Vec2Processor",
    "WhisperFeatureExtractor",
    "WhisperTimeStampLogitsProcessor",
    "Word",
    "detect_language_ids",
    "dynamic_time_warping",
    "from_tiktoken",
    "generate",
    "language_code",
    "load_audio",
    "log_mel_spectrogram",
    "median_filter",
    "transcribe",
]
