"""`votive.nn.functional`: activations, losses and other operators of networks.

The functions are declared in `votive/ops`; modules use them, so they are bound when this is imported.
"""

from ..surface import fill as _fill

_fill("nn.functional", globals())
