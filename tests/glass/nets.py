"""Models that the tests of the glass engine look into."""

from __future__ import annotations

from typing import Any

import votive
from votive import nn


class Block(nn.Module):
    """A residual block that uses one layer twice and makes another one on the fly."""

    def __init__(self, shared: nn.Module) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.shared = shared
        self.lin = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        y = self.lin(self.norm(x))
        y = self.shared(y)
        return x + votive.tanh(self.shared(y))


class Net(nn.Module):
    """Two blocks that share a layer, a dropout and a head that returns a dict."""

    def __init__(self) -> None:
        super().__init__()
        shared = nn.Linear(4, 4)
        self.blocks = nn.ModuleList([Block(shared), Block(shared)])
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(4, 3)

    def forward(self, x: Any, scale: float = 1.0) -> dict[str, Any]:
        for block in self.blocks:
            x = block(x)
        x = self.drop(x)
        return {"hidden": x, "out": self.head(x) * scale}


class Recursive(nn.Module):
    """Calls itself."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(2, 2)

    def forward(self, x: Any, depth: int = 2) -> Any:
        x = self.lin(x)
        return x if depth == 0 else self(x, depth - 1)


def net(seed: int = 0) -> Net:
    votive.manual_seed(seed)
    return Net()


def x(seed: int = 1) -> Any:
    return votive.randn(2, 5, 4, generator=votive.Generator().manual_seed(seed))
