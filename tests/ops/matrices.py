"""Records of operators that ask for special matrices, or leave signs and phases open.

A record's samples are plain random arrays; `prepare` makes of them what the operator asks for, and
`finish` takes out of its results what it leaves open. Both are written so that votive, torch and
NumPy run them, and gradients are tested through both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .catalog import Record, S

# Square, wide, tall, in batches, of one element and of none.
SHAPES: list[Any] = [
    (S(3, 3),),
    (S(2, 4),),
    (S(4, 2),),
    (S(2, 3, 2),),
    (S(2, 1, 2, 3),),
    (S(1, 1),),
    (S(0, 0),),
    (S(0, 3),),
    (S(3, 0),),
    (S(0, 3, 2),),
]


def adjoint(x: Any) -> Any:
    """The conjugate transpose, in any package."""
    return x.swapaxes(-2, -1).conj()


def _eye(package: Any, like: Any) -> Any:
    return package.eye(like.shape[-1], dtype=like.dtype, device=like.device)


def untouched(package: Any, *args: Any) -> tuple[Any, ...]:
    return args


def regular(package: Any, a: Any, *rest: Any) -> tuple[Any, ...]:
    """A matrix far from singular."""
    return (a + 5 * _eye(package, a), *rest)


def positive(package: Any, a: Any, *rest: Any) -> tuple[Any, ...]:
    """A Hermitian matrix with eigenvalues above 2."""
    return (a @ adjoint(a) + 2 * _eye(package, a), *rest)


def hermitian(package: Any, a: Any, *rest: Any) -> tuple[Any, ...]:
    return (a + adjoint(a), *rest)


@dataclass(frozen=True)
class Matrices(Record):
    """A record whose operator is called through `prepare` and `finish`."""

    prepare: Callable[..., tuple[Any, ...]] = untouched
    finish: Callable[[Any], Any] = tuple

    def resolve(self, package: Any) -> Callable[..., Any]:
        fn = super().resolve(package)

        def run(*args: Any, **kwargs: Any) -> Any:
            return self.finish(fn(*self.prepare(package, *args), **kwargs))

        return run


def _alone(result: Any) -> Any:
    return result


def through(
    name: str,
    samples: list[Any],
    *,
    prepare: Callable[..., tuple[Any, ...]] = untouched,
    finish: Callable[[Any], Any] = _alone,
    reference: Callable[..., Any] | None = None,
    **options: Any,
) -> Record:
    """Declare such a record; `reference` gets prepared arrays, and its results are finished too."""
    wrapped = None
    if reference is not None:
        wrapped = lambda *args, **kwargs: finish(reference(*prepare(np, *args), **kwargs))
    return Matrices(name, samples, reference=wrapped, prepare=prepare, finish=finish, **options)
