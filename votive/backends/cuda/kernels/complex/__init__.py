"""Operators on complex tensors, which Triton has no type for: rows ahead of those of the same family for reals."""
