"""`votive.nn.functional`: activations, losses and other operators of networks.

Declared in `votive/ops`; bound when this is imported, because layers name them.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from ..surface import fill as _fill

_fill("nn.functional", globals())

if _TYPE_CHECKING:

    def __getattr__(name: str) -> _Any: ...
