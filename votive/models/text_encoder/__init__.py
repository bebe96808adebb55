"""One encoder of texts for all families: a design says what it is made of, a family maps its keys and names to one."""

from .classes import encoder_classes
from .config import EncoderConfig
from .design import EncoderDesign, Heads
from .heads import EncoderHead
from .model import EncoderModel

__all__ = ["EncoderConfig", "EncoderDesign", "EncoderHead", "EncoderModel", "Heads", "encoder_classes"]
