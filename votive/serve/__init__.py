"""Serving models: an engine that writes many texts side by side, and the HTTP interface that everyone's tools speak.

What lies inside of a request can be looked at and changed while others of the same batch stay what they are. See
docs/serving.md.
"""

from .blocks import TooLong
from .client import Answer, Client, Refused
from .engine import ContextExceeded, Engine
from .events import Busy, Closing, Delta, Done, Ended, Failed, TextRequest
from .served_model import NotServed, ServedModel

__all__ = [
    "Answer",
    "Busy",
    "Client",
    "Closing",
    "ContextExceeded",
    "Delta",
    "Done",
    "Ended",
    "Engine",
    "Failed",
    "NotServed",
    "Refused",
    "ServedModel",
    "TextRequest",
    "TooLong",
]
