"""Transformers, under the path where torch keeps them."""

from ..layers.transformer import Transformer as Transformer
from ..layers.transformer import TransformerDecoder as TransformerDecoder
from ..layers.transformer import TransformerEncoder as TransformerEncoder
from ..layers.transformer_layers import TransformerDecoderLayer as TransformerDecoderLayer
from ..layers.transformer_layers import TransformerEncoderLayer as TransformerEncoderLayer
