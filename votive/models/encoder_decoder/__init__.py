"""Encoders with decoders described by data: a family is a short mapping of keys to a `Seq2SeqDesign`."""

from .classes import seq2seq_classes
from .config import Seq2SeqConfig
from .design import Seq2SeqDesign, Side

__all__ = ["Seq2SeqConfig", "Seq2SeqDesign", "Side", "seq2seq_classes"]
