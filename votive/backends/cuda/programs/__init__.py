"""Programs: Triton functions with their types and constants, the text of generated kernels, and what lays tensors out
for them. Knows no operators.
"""
