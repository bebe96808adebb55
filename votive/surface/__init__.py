"""What hangs onto Tensor and the package beside operators: Python's operators, windows on memory, exchange with NumPy
and DLPack, printing, and what users build operators with.
"""
