"""Dropout, under the path where torch keeps them."""

from ..layers.dropout import AlphaDropout as AlphaDropout
from ..layers.dropout import Dropout as Dropout
from ..layers.dropout import Dropout1d as Dropout1d
from ..layers.dropout import Dropout2d as Dropout2d
from ..layers.dropout import Dropout3d as Dropout3d
from ..layers.dropout import FeatureAlphaDropout as FeatureAlphaDropout
