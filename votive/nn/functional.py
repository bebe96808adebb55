"""`votive.nn.functional`: activations, losses and other operators of networks.

Declared in `votive/ops`; bound when this is imported, because layers name them.
"""

import typing as _typing

from ..surface.namespaces import fill as _fill

_fill("nn.functional", globals())

if _typing.TYPE_CHECKING:

    def __getattr__(name: str) -> _typing.Any: ...
