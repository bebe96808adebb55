"""Modules with weights of 8 bits whose inputs are rounded by their own bounds at each call."""

from __future__ import annotations

from .linear import Linear
from .recurrent import GRU, LSTM, GRUCell, LSTMCell, RNNCell

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "Linear", "RNNCell"]
