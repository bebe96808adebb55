"""Sparse tensors in files: our own and torch's, and files that lie about them."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import votive
from votive.serialization import FileFormatError
from votive.sparse.persistence import restore

KINDS = {
    "coo": lambda x: x.to_sparse(),
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
    "bsr": lambda x: x.to_sparse_bsr((2, 2)),
    "bsc": lambda x: x.to_sparse_bsc((2, 2)),
    "hybrid": lambda x: x.to_sparse(1),
}
ARRAY = np.array([[0, 1.5, 0, 0], [2, 0, 0, 3]])


def test_what_was_saved_is_loaded() -> None:
    made: dict[str, Any] = {name: kind(votive.tensor(ARRAY)) for name, kind in KINDS.items()}
    made["leaf"] = made["coo"].clone().requires_grad_()
    made["repeated"] = votive.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (3,))
    file = io.BytesIO()
    votive.save(made, file)
    file.seek(0)
    for name, x in votive.load(file).items():
        assert x.layout is made[name].layout
        assert x.requires_grad == made[name].requires_grad
        assert repr(x) == repr(made[name])
    assert not x.is_coalesced()


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
def test_files_of_torch_are_read() -> None:
    torch = pytest.importorskip("torch")
    for name, kind in KINDS.items():
        file = io.BytesIO()
        theirs = kind(torch.tensor(ARRAY))
        torch.save({"a": [theirs]}, file)
        file.seek(0)
        ours = votive.load(file)["a"][0]
        assert repr(ours) == repr(theirs).replace("torch.", "votive."), name


def test_parts_that_do_not_belong_together_are_refused() -> None:
    at, values = votive.tensor([[0, 5]]), votive.tensor([1.0, 2.0])
    for layout, parts in (
        ("sparse_coo", [at, values]),
        ("sparse_csr", [votive.tensor([0, 1, 9]), votive.tensor([0, 1]), values]),
        ("sparse_xyz", [at, values]),
        ("sparse_coo", [at]),
    ):
        with pytest.raises(RuntimeError):
            restore(layout, [2] if len(parts) == 2 else [2, 2], parts)
    with pytest.raises(RuntimeError, match="coalesced"):
        restore("sparse_coo", [2], [votive.tensor([[1, 0]]), values], coalesced=True)
    assert issubclass(FileFormatError, Exception)
