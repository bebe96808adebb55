"""`votive.special`: special functions, as `torch.special`.

The functions are declared in `votive/ops` and bound here when votive is imported.
"""
