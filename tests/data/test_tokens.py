"""Token files: what is written is read, by windows, also in workers; damage is noticed."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive.data import DataLoader, Subset, TokenFile, TokenWindows
from votive.io import FileFormatError

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


@pytest.mark.parametrize(
    ("tokens", "dtype", "want"),
    [
        ([1, 2, 65535], None, np.uint16),
        ([1, 2, 65536], None, np.uint32),
        (np.arange(5), None, np.uint16),
        (np.array([70_000]), None, np.uint32),
        (votive.arange(4), None, np.uint16),
        ([[1, 2], [], [3]], None, np.uint16),
        ([], None, np.uint16),
        ((i for i in range(3)), np.uint32, np.uint32),
        (([i, i] for i in range(3)), "uint16", np.uint16),
        ([np.array([1, 2]), 3, votive.tensor([4, 5])], None, np.uint16),
    ],
)
def test_a_file_holds_the_ids_that_were_written(tmp_path: Path, tokens: Any, dtype: Any, want: Any) -> None:
    flat = {0: [0, 1, 2], 1: [0, 0, 1, 1, 2, 2]}
    if isinstance(tokens, (list, np.ndarray)) or hasattr(tokens, "tolist"):
        expected = [i for t in tokens for i in np.asarray(t).reshape(-1).tolist()]
    else:
        expected = flat[0 if dtype is np.uint32 else 1]
    file = TokenFile.write(tmp_path / "t", tokens, dtype=dtype)
    assert len(file) == len(expected)
    assert file[:].tolist() == expected
    assert file.dtype == want
    assert [p.name for p in tmp_path.iterdir()] == ["t"]


@pytest.mark.parametrize(
    ("tokens", "dtype", "error"),
    [
        ([-1], None, ValueError),
        ([70_000], np.uint16, ValueError),
        ([1.5], None, TypeError),
        ([1], np.int32, ValueError),
        (([i] for i in (1, 70_000)), None, ValueError),
    ],
)
def test_ids_that_do_not_fit_are_refused_and_leave_no_file(
    tmp_path: Path, tokens: Any, dtype: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"TokenFile\.write"):
        TokenFile.write(tmp_path / "t", tokens, dtype=dtype)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["empty", "magic", "version", "short", "long"])
def test_a_damaged_file_is_an_error_that_says_so(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "t"
    TokenFile.write(path, [1, 2, 3])
    raw = path.read_bytes()
    path.write_bytes(
        {
            "empty": b"",
            "magic": b"no" + raw[2:],
            "version": raw[:4] + b"\x09" + raw[5:],
            "short": raw[:-1],
            "long": raw + b"\0",
        }[damage]
    )
    with pytest.raises(FileFormatError, match=r"TokenFile: .*t"):
        TokenFile(path)


@pytest.mark.parametrize("stride", [None, 1, 2, 5])
def test_windows_are_inputs_and_the_same_one_token_later(stride: int | None) -> None:
    tokens = np.arange(100, 120)
    data = TokenWindows(tokens, 4, stride)
    step = stride or 4
    starts = [s for s in range(0, 20, step) if s + 5 <= 20]
    assert len(data) == len(starts)
    for i, start in enumerate(starts):
        x, y = data[i]
        assert x.tolist() == tokens[start : start + 4].tolist()
        assert y.tolist() == tokens[start + 1 : start + 5].tolist()
        assert (x.dtype, y.dtype) == (votive.int64, votive.int64)
    assert data[-1][0].tolist() == data[len(data) - 1][0].tolist()
    with pytest.raises(IndexError):
        data[len(data)]


def test_too_few_tokens_give_no_window_and_wrong_sizes_an_error() -> None:
    assert len(TokenWindows(np.arange(4), 4)) == 0
    assert len(TokenWindows(np.arange(5), 4)) == 1
    assert len(TokenWindows(np.arange(0), 4)) == 0
    with pytest.raises(ValueError, match="positive"):
        TokenWindows(np.arange(9), 0)


def test_batches_of_windows_are_the_same_from_workers_and_from_subsets(tmp_path: Path) -> None:
    path = tmp_path / "t"
    TokenFile.write(path, np.arange(2000) % 777)
    data = TokenWindows(path, 8)
    assert len(pickle.dumps(data.tokens)) < 1000
    some = Subset(data, list(range(0, 200, 7)))
    one_by_one = [some[i] for i in range(len(some))]
    for workers in (0, 1):
        batches = list(DataLoader(some, 4, num_workers=workers))
        for part in (0, 1):
            got = [row for batch in batches for row in batch[part].tolist()]
            assert got == [sample[part].tolist() for sample in one_by_one]
