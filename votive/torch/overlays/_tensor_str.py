"""`torch._tensor_str`: how tensors are written down."""

from __future__ import annotations

from typing import Any

import votive

from ...surface.printing import get_printoptions
from ...tensor import Tensor

__all__ = ["PRINT_OPTS", "_add_suffixes", "_str", "_str_intern", "_tensor_str", "set_printoptions"]


class _Options:
    """The options that `torch.set_printoptions` sets."""

    def __getattr__(self, name: str) -> Any:
        found = get_printoptions()
        if name not in found:
            raise AttributeError(name)
        return found[name]


PRINT_OPTS: Any = _Options()
set_printoptions = votive.set_printoptions


def _tensor_str(self: Tensor, indent: int) -> str:
    """The numbers of a tensor alone, with further lines moved in by `indent`."""
    text = repr(self.detach().cpu().as_subclass(Tensor) if type(self) is not Tensor else self.detach().cpu())
    depth, end = 0, len(text)
    start = text.index("(") + 1
    for i in range(start, len(text)):
        depth += {"[": 1, "]": -1}.get(text[i], 0)
        if depth == 0 and text[i] in ",)":
            end = i
            break
    # What stands in front of the numbers is as wide as the lines below are moved in.
    lines = text[start:end].split("\n")
    return "\n".join([lines[0], *(" " * indent + line[start:] if line.strip() else line for line in lines[1:])])


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """A text with further facts behind it, in lines of 80 characters."""
    parts = [tensor_str]
    width = len(tensor_str) - tensor_str.rfind("\n") + 1
    for suffix in suffixes:
        if force_newline or width + len(suffix) + 2 > 80:
            parts.append(",\n" + " " * indent + suffix)
            width, force_newline = indent + len(suffix), False
        else:
            parts.append(", " + suffix)
            width += len(suffix) + 2
    return "".join(parts) + ")"


def _str_intern(inp: Tensor, *, tensor_contents: Any = None) -> str:
    """What `repr` gives, or the given text of the numbers in its place."""
    return repr(inp) if tensor_contents is None else f"tensor({tensor_contents})"


def _str(self: Tensor, *, tensor_contents: Any = None) -> str:
    """What `repr` gives."""
    return _str_intern(self, tensor_contents=tensor_contents)
