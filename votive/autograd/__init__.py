"""Gradients: the graph, the backward pass, and what is built on them."""

from .engine import backward, grad

__all__ = ["backward", "grad"]
