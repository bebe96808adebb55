"""Functions that kernels call on the device: mathematics on blocks of values. Knows no memory."""
