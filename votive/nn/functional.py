"""`votive.nn.functional`: activations, losses and other operators of networks.

Declared in `votive/ops`; bound when this is imported, because layers name them.
"""

from ..surface import fill as _fill

_fill("nn.functional", globals())
