"""Attention beyond `nn.functional.scaled_dot_product_attention`. The names are torch's."""

from . import varlen as varlen
