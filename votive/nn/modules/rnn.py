"""Recurrent networks, under the path where torch keeps them."""

from ..layers.recurrent import GRU as GRU
from ..layers.recurrent import LSTM as LSTM
from ..layers.recurrent import RNN as RNN
from ..layers.recurrent import RNNBase as RNNBase
from ..layers.recurrent_cells import GRUCell as GRUCell
from ..layers.recurrent_cells import LSTMCell as LSTMCell
from ..layers.recurrent_cells import RNNCell as RNNCell
from ..layers.recurrent_cells import RNNCellBase as RNNCellBase
