"""An operator is made ready at its first call, which several threads may make at once."""

from __future__ import annotations

from typing import Any

from votive.dispatch.arguments import configure
from votive.ops.operator import Op


class Watched(Op):
    """Notes in which order it gets its functions."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("key", "values"):
            self.__dict__.setdefault("order", []).append(name)
        super().__setattr__(name, value)


def test_whoever_finds_the_key_of_an_operator_finds_the_rest() -> None:
    op = Watched("watched(Tensor input, int dim)", kind="structured")
    configure(op)
    assert op.order == ["values", "key"]
    assert op.values((1, 2)) == (1,)
