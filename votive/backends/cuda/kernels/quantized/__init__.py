"""Weights in blocks of few bits: decoded, as tables, and in products."""
