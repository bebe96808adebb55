"""NVIDIA's libraries through ctypes: cuBLASLt, cuFFT, cuSOLVER."""
