"""`votive.fft`: discrete Fourier transforms, as `torch.fft`.

The functions are declared in `votive/ops` and bound here when votive is imported.
"""
