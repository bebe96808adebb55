"""`votive.special`: special functions, as `torch.special`.

The functions are declared in `votive/ops` and bound here when votive is imported.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
