"""Continuing texts with a language model: search, sampling, streaming."""

from .config import GenerationConfig
from .generating import generate
from .output import Acceptance, GenerateOutput
from .prefix import PrefixCache
from .processors import (
    ExponentialDecayLengthPenalty,
    ForcedBOSTokenLogitsProcessor,
    ForcedEOSTokenLogitsProcessor,
    FrequencyPenaltyLogitsProcessor,
    InfNanRemoveLogitsProcessor,
    LogitNormalization,
    MinLengthLogitsProcessor,
    MinNewTokensLengthLogitsProcessor,
    NoBadWordsLogitsProcessor,
    NoRepeatNGramLogitsProcessor,
    PresencePenaltyLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    SequenceBiasLogitsProcessor,
    SuppressTokensAtBeginLogitsProcessor,
    SuppressTokensLogitsProcessor,
)
from .streaming import BaseStreamer, Event, TextIteratorStreamer, TextStreamer, stream
from .warpers import (
    EpsilonLogitsWarper,
    EtaLogitsWarper,
    LogitsProcessor,
    LogitsProcessorList,
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
    TypicalLogitsWarper,
)

__all__ = [
    "Acceptance", "BaseStreamer", "EpsilonLogitsWarper", "EtaLogitsWarper", "Event",
    "ExponentialDecayLengthPenalty",
    "ForcedBOSTokenLogitsProcessor", "ForcedEOSTokenLogitsProcessor",
    "FrequencyPenaltyLogitsProcessor", "GenerateOutput", "GenerationConfig",
    "InfNanRemoveLogitsProcessor", "LogitNormalization", "LogitsProcessor", "LogitsProcessorList",
    "MinLengthLogitsProcessor", "MinNewTokensLengthLogitsProcessor", "MinPLogitsWarper",
    "NoBadWordsLogitsProcessor", "NoRepeatNGramLogitsProcessor", "PrefixCache",
    "PresencePenaltyLogitsProcessor", "RepetitionPenaltyLogitsProcessor",
    "SequenceBiasLogitsProcessor", "SuppressTokensAtBeginLogitsProcessor",
    "SuppressTokensLogitsProcessor", "TemperatureLogitsWarper", "TextIteratorStreamer",
    "TextStreamer", "TopKLogitsWarper", "TopPLogitsWarper", "TypicalLogitsWarper", "generate",
    "stream",
]  # fmt: skip
