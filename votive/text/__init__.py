"""Tokenizers, chat templates, streaming text and vocabularies learned from own data.

The splitting itself is done by the `tokenizers` library, which is imported on first use.
"""

from .detokenizer import StreamingDetokenizer
from .encoding import BatchEncoding
from .gguf import from_gguf, from_llama2c
from .gguf_writing import to_gguf
from .pretokenizers import PRE_TOKENIZERS
from .sandbox import TemplateError
from .stops import StopMatcher
from .tokenizer import Tokenizer
from .training import train_bpe

__all__ = [
    "BatchEncoding",
    "PRE_TOKENIZERS",
    "StopMatcher",
    "StreamingDetokenizer",
    "TemplateError",
    "Tokenizer",
    "from_gguf",
    "from_llama2c",
    "to_gguf",
    "train_bpe",
]
