"""The same expression means the same in torch and votive: result, or kind of error.

`spelling/*.txt` hold one expression per line over `lib` (torch or votive), `x` (2 by 3 floats), `z`
(a 0-d float) and `np`: overloads, keyword names, odd sizes, and what torch refuses.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive as vt

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

FILES = sorted((Path(__file__).parent / "spelling").glob("*.txt"))
KINDS = (IndexError, TypeError, ValueError, NotImplementedError, RuntimeError)


class Pair:
    """A sequence that is neither list nor tuple."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, i: int) -> int:
        return range(1, 3)[i]


class Index:
    """Has __index__ and is no number."""

    def __index__(self) -> int:
        return 3


class Real:
    """Has __float__ and is no number."""

    def __float__(self) -> float:
        return 3.5


class Int(int):
    """A number by inheritance."""


CLASSES = {"L": Pair, "IX": Index, "FL": Real, "I": Int}


def plain(result: Any, lib: Any) -> Any:
    """A result as comparable values; numbers are kept apart from what describes them."""
    if isinstance(result, lib.Tensor):
        name = str(result.dtype).rpartition(".")[2]
        return ["tensor", name, tuple(result.shape), result.requires_grad], result.tolist()
    if isinstance(result, (tuple, list)):
        pairs = [plain(r, lib) for r in result]
        return [p[0] for p in pairs], [p[1] for p in pairs]
    return str(result).replace(f"{lib.__name__}.", ""), 0


def outcome(lib: Any, expression: str) -> Any:
    """(description, numbers) of the result, or the kind of error."""
    x, z = lib.arange(6.0).reshape(2, 3), lib.tensor(3.0)
    scope = {"lib": lib, "x": x, "z": z, "np": np, **CLASSES}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(eval(expression, scope), lib)
        except KINDS as e:
            return next(k.__name__ for k in KINDS if isinstance(e, k)), 0


def flat(numbers: Any) -> np.ndarray:
    if not isinstance(numbers, list):
        return np.array([complex(numbers)])
    return np.concatenate([np.zeros(0), *[flat(n) for n in numbers]])


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_expressions_mean_the_same_in_torch_and_votive(file: Path) -> None:
    expressions = file.read_text().splitlines()
    assert expressions
    different = []
    for expression in expressions:
        (want, values), (got, numbers) = outcome(torch, expression), outcome(vt, expression)
        if got != want or not np.allclose(flat(numbers), flat(values), 1e-6, 0, equal_nan=True):
            different.append(f"{expression}\n  torch:  {want} {values}\n  votive: {got} {numbers}")
    assert not different, "\n".join(different)
