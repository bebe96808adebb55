"""A GPU without a GPU: the driver on host memory, Triton's interpreter, and NumPy in place of NVIDIA's library."""
