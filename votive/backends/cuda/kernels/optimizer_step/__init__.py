"""Optimizer steps, norms of gradients, and their scaling."""
