"""Batches of small real matrices: a program per matrix, which is held in registers as a whole."""
