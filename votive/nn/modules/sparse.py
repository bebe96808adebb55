"""Embeddings, under the path where torch keeps them."""

from ..layers.embedding import Embedding as Embedding
from ..layers.embedding import EmbeddingBag as EmbeddingBag
