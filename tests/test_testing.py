"""`votive.testing`: the same verdicts, messages and tensors as torch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import votive
from tests import docstrings
from votive.testing import comparison, creation

NAN, INF = float("nan"), float("inf")
DOCS = docstrings.examples([comparison, creation])


@pytest.mark.parametrize("name", sorted(DOCS))
def test_the_examples_run(name: str) -> None:
    docstrings.run(name, DOCS[name])


def comparisons(lib: Any) -> list[tuple[tuple[Any, Any], dict[str, Any]]]:
    t = lib.tensor
    pairs: list[Any] = [
        (t([1.0, 2.0, 3.0]), t([1.0, 2.5, 3.0])),
        (t([[1.0, 2.0], [NAN, 0]]), t([[1.0, 2.5], [NAN, 0]])),
        (t([1, 2]), t([1, 3])),
        (t(1.0), t(2.0)),
        (1.0, 2.0), (1, 2), (1, 2.0), (True, False), (None, 1), (1, None), ("a", "a"), (None, None),
        (t([1.0]), t([1.0], dtype=lib.float64)),
        (t([1.0]), t([[1.0]])),
        ([t([1.0]), t([2.0])], [t([1.0]), t([3.0])]), ([1, 2], [1]), ({"a": t(1.0)}, {"a": t(2.0)}),
        ({"a": 1, "c": 2}, {"b": 1, "a": 1}), ([[1.0], [{"k": 2.0}]], [[1.0], [{"k": 3.0}]]), ((1.0,), [1.0]),
        (np.array([1.0, 2.0]), np.array([1.0, 2.1])), (np.float32(1), 1.0), (NAN, NAN), (1 + 1j, 1 + 2j),
        (t([True, False]), t([True, True])), (t([NAN]), t([NAN])), (t([1 + 2j]), t([1 + 3j])), (t([]), t([])),
        (t([INF, 1.0]), t([1.0, 1.0])), (t([1.0], dtype=lib.bfloat16), t([1.2], dtype=lib.bfloat16)),
        (t([1], dtype=lib.uint8), t([255], dtype=lib.uint8)), (t([0.5, 1.0]), t([0.0, 1.0])),
        (t([[1.0, 2.0], [3.0, 4.0]]), t([[1.0, 3.0], [2.0, 4.0]]).T),
    ]  # fmt: skip
    options: list[dict[str, Any]] = [
        {},
        {"rtol": 0.2, "atol": 0.1},
        {"rtol": 0, "atol": 0},
        {"equal_nan": True},
        {"check_dtype": False},
        {"check_stride": True},
        {"msg": "mine"},
        {"msg": lambda text: "-> " + text},
    ]
    return [(pair, given) for pair in pairs for given in options]


def verdict(run: Callable[[], Any]) -> str:
    try:
        run()
    except (AssertionError, TypeError, ValueError, RuntimeError) as e:
        return f"{type(e).__name__}: {e}".replace("votive", "torch").replace("torch.tensor.Tensor", "torch.Tensor")
    return "close"


@pytest.mark.parity
def test_verdicts_and_messages_are_torchs() -> None:
    torch = pytest.importorskip("torch")
    theirs = comparisons(torch)
    for i, ((a, b), given) in enumerate(comparisons(votive)):
        mine = verdict(lambda a=a, b=b, given=given: votive.testing.assert_close(a, b, **given))
        (c, d), same = theirs[i]
        assert mine == verdict(lambda c=c, d=d, same=same: torch.testing.assert_close(c, d, **same)), (a, b, given)


def test_a_difference_on_purpose_is_found() -> None:
    with pytest.raises(AssertionError, match=r"Mismatched elements: 1 / 6"):
        votive.testing.assert_close(
            votive.zeros(2, 3), votive.zeros(2, 3).index_put((votive.tensor(1),) * 2, votive.ones(()))
        )
    with pytest.raises(TypeError, match="No comparison pair"):
        votive.testing.assert_close([votive.ones(1)], votive.ones(1))


@pytest.mark.parity
@pytest.mark.parametrize(
    "given",
    [
        {"dtype": "float32", "low": 2, "high": 1},
        {"dtype": "float32", "noncontiguous": True},
        {"dtype": "int64", "low": 0, "high": 3, "exclude_zero": True},
        {"dtype": "bool", "low": 3, "high": 5},
        {"dtype": "uint8", "low": -3, "high": 5},
        {"dtype": "int32", "requires_grad": True},
        {"dtype": "float64", "memory_format": "channels_last"},
        {"dtype": "float32", "low": NAN, "high": 1},
        {"dtype": "int32", "low": 1.5, "high": 1.7},
        {"dtype": "int32", "low": 1, "high": 1},
        {"dtype": "complex64", "requires_grad": True},
    ],
    ids=str,
)
def test_tensors_are_made_as_torch_makes_them(given: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")

    def made(lib: Any) -> str:
        named = {k: getattr(lib, v) if isinstance(v, str) else v for k, v in given.items()}
        x = lib.testing.make_tensor((2, 3, 4, 4), device="cpu", **named)
        return f"{tuple(x.shape)} {x.stride()} {x.dtype} {x.requires_grad}"

    def shown(lib: Any) -> str:
        try:
            return made(lib).replace("votive", "torch")
        except (ValueError, RuntimeError) as e:
            return f"{type(e).__name__}: {e}".replace("votive", "torch")

    assert shown(votive) == shown(torch)


@pytest.mark.parametrize("name", ["bool", "uint8", "int8", "int64", "float16", "float64", "complex64", "float8_e4m3fn"])
def test_numbers_fill_their_range(name: str) -> None:
    dtype = getattr(votive, name)
    x = votive.testing.make_tensor(4000, dtype=dtype, device="cpu")
    real = x.real.double() if dtype.is_complex else x.double()
    low, high = (0, 1) if name == "bool" else (0, 9) if name == "uint8" else (-9, 9)
    assert real.min().item() == pytest.approx(low, abs=0.1)
    assert real.max().item() == pytest.approx(high, abs=0.1)
