"""`votive.nn.functional`: activations, losses and other operators of networks.

The functions are declared in `votive/ops` and bound here when votive is imported.
"""
