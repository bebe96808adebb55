"""`votive.signal.windows`: window functions, as `torch.signal.windows`.

The functions are declared in `votive/ops` and bound here when votive is imported.
"""
