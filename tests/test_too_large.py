"""What does not fit into memory, or into 64 bits, is refused in votive's words.

The errors have the types that torch raises and name the function that was called.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

import votive as vt
from votive.core.errors import OutOfMemoryError, SizeError

F = vt.nn.functional
one = vt.ones

# No machine that runs this has an exbibyte; asking for it costs nothing.
EXBIBYTE = 2**58

TOO_MUCH: dict[str, Any] = {
    "zeros": lambda n: vt.zeros(n),
    "ones": lambda n: vt.ones(n),
    "empty": lambda n: vt.empty(n),
    "full": lambda n: vt.full((n,), 1.5),
    "rand": lambda n: vt.rand(n),
    "randn": lambda n: vt.randn(n),
    "randint": lambda n: vt.randint(5, (n,)),
    "randperm": lambda n: vt.randperm(n),
    "arange": lambda n: vt.arange(n),
    "linspace": lambda n: vt.linspace(0, 1, n),
    "logspace": lambda n: vt.logspace(0, 1, n),
    "eye": lambda n: vt.eye(n, 1),
    "normal": lambda n: vt.normal(0.0, 1.0, (n,)),
    "new_zeros": lambda n: one(3).new_zeros(n),
    "new_full": lambda n: one(3).new_full((n,), 1),
    "new_empty": lambda n: one(3).new_empty(n),
    "new_ones": lambda n: one(3).new_ones(n),
    "repeat": lambda n: one(3).repeat(n),
    "tile": lambda n: one(3).tile(n),
    "repeat_interleave": lambda n: one(3).repeat_interleave(n),
    "one_hot": lambda n: F.one_hot(vt.tensor([1]), n),
    "resize_": lambda n: one(3).resize_(n),
    "histc": lambda n: vt.histc(one(3), bins=n),
    "pad": lambda n: F.pad(one(1, 3), (n, 0)),
    "bincount": lambda n: vt.bincount(vt.tensor([n])),
    "interpolate": lambda n: F.interpolate(one(1, 1, 3), size=n),
    "conv1d": lambda n: F.conv1d(one(1, 1, 3), one(1, 1, 3), padding=n),
    "conv_transpose1d": lambda n: F.conv_transpose1d(one(1, 1, 3), one(1, 1, 3), stride=n),
    "hann_window": lambda n: vt.hann_window(n),
    "diag": lambda n: vt.diag(one(3), n // 2**28),
    "fft": lambda n: vt.fft.fft(one(3), n=n),
    "multinomial": lambda n: vt.multinomial(one(3), n, replacement=True),
    "tril_indices": lambda n: vt.tril_indices(n // 16, 3),
}

EXPANDED: dict[str, Any] = {
    "zeros_like": lambda x: vt.zeros_like(x),
    "clone": lambda x: x.clone(),
    "contiguous": lambda x: x.contiguous(),
    "stack": lambda x: vt.stack([x, x]),
    "bernoulli": lambda x: vt.bernoulli(x),
    "add": lambda x: x + 1,
    "exp": lambda x: x.exp(),
    "mul": lambda x: x * x,
    "outer": lambda x: vt.outer(x, one(4)),
    "kron": lambda x: vt.kron(x, one(4)),
    "cat": lambda x: vt.cat([x, x]),
    "matmul": lambda x: x[:, None] @ one(1, 4),
    "cdist": lambda x: vt.cdist(x[:, None], one(4, 1)),
    "to": lambda x: x.to(vt.float64),
    "where": lambda x: vt.where(x > 0, x, 0.0),
}


@pytest.mark.parametrize("name", TOO_MUCH)
@pytest.mark.parametrize("again", [False, True])
def test_memory_that_is_not_there_is_an_error_that_says_how_much(name: str, again: bool) -> None:
    """The second call finds the plan of the first and must say the same."""
    call = TOO_MUCH[name]
    if again:
        with pytest.raises(OutOfMemoryError):
            call(EXBIBYTE)
    with pytest.raises(OutOfMemoryError, match=rf"^{name}: out of memory on the CPU") as e:
        call(EXBIBYTE)
    assert isinstance(e.value, RuntimeError)
    assert isinstance(e.value, MemoryError)
    assert re.search(r"takes [\d.]+ .iB \([\d,]+ bytes\)", str(e.value))


@pytest.mark.parametrize("name", TOO_MUCH)
def test_more_than_64_bits_count_is_an_error_too(name: str) -> None:
    for n in (2**62, 2**63 - 1, 2**64 + 1):
        with pytest.raises((RuntimeError, OverflowError, ValueError), match=f"^({name}|tensor): "):
            TOO_MUCH[name](n)


@pytest.mark.parametrize("name", EXPANDED)
def test_large_inputs_that_take_no_memory_have_results_that_do(name: str) -> None:
    for _ in range(2):
        with pytest.raises(OutOfMemoryError, match=rf"^(gt|{name}): .*bytes"):
            EXPANDED[name](one(1).expand(EXBIBYTE))


def test_shapes_beyond_64_bits_are_named_with_the_function() -> None:
    cases = {
        r"empty: .*\(4611686018427387904, 4\)": lambda: vt.empty(2**62, 4),
        r"zeros: .*\(9223372036854775808,\)": lambda: vt.zeros(2**63),
        r"zeros: .*\(0, 4611686018427387904, 4\) and strides": lambda: vt.zeros(0, 2**62, 4),
        r"expand: .*\(4611686018427387904, 4\)": lambda: one(1).expand(2**62, 4),
        r"arange: ": lambda: vt.arange(1e30),
        r"bincount: ": lambda: vt.bincount(vt.tensor([2**62])),
        r"repeat_interleave: ": lambda: one(2).repeat_interleave(vt.tensor([2**62, 1])),
        r"cat: ": lambda: vt.cat([one(1).expand(2**60)] * 3),
        r"empty: ": lambda: vt.nn.Linear(2**40, 2**40),
    }
    for text, call in cases.items():
        with pytest.raises(SizeError, match=f"^{text}"):
            call()


def test_numbers_beyond_64_bits_name_the_function() -> None:
    x = vt.arange(3)
    cases = {
        "add": lambda: x + 2**64,
        "mul": lambda: x.mul_(2**70),
        "lt": lambda: x < 2**64,
        "triu": lambda: one(3, 3).triu(2**64),
    }
    for name, call in cases.items():
        with pytest.raises(OverflowError, match=f"^{name}: .*64 bits"):
            call()


def test_after_out_of_memory_all_is_as_before() -> None:
    x = vt.arange(6.0)
    with pytest.raises(OutOfMemoryError):
        x.resize_(EXBIBYTE)
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
    assert (x + 1).sum().item() == 21
