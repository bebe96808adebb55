"""Weights in blocks of few bits, and what is done with them."""
