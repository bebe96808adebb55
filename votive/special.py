"""`votive.special`: special functions, as `torch.special`.

The functions are declared in `votive/ops` and bound here when votive is imported.
"""

import typing as _typing

if _typing.TYPE_CHECKING:

    def __getattr__(name: str) -> _typing.Any: ...
