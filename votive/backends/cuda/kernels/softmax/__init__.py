"""Softmax, its logarithm and their gradients: along rows that lie dense, and along any other dimension."""
