"""What the kernels of all devices share: pure functions of numbers and NumPy arrays, tables, coefficients, and the
rules that give the same results everywhere. Knows no device and no operator.
"""
