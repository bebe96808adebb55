"""One decoder for all families, described by data: `design` says what a family is made of, the rest builds and runs it.

Knows no family: those map the keys and names of Hugging Face's files to a `Design`.
"""

from .classes import decoder_classes
from .config import DecoderConfig
from .design import Design, Experts, Rope
from .model import Decoder, DecoderForCausalLM

__all__ = ["Decoder", "DecoderConfig", "DecoderForCausalLM", "Design", "Experts", "Rope", "decoder_classes"]
