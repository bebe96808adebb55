"""Sparse tensors by themselves: construction, views, switches, copies, SciPy."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import votive


def test_parts_are_shared_not_copied() -> None:
    values = votive.tensor([1.0, 2.0])
    x = votive.sparse_coo_tensor(votive.tensor([[0, 1]]), values, (3,))
    x._values()[0] = 5.0
    assert values.tolist() == [5.0, 2.0]
    y = votive.eye(2).to_sparse_csr()
    y.values().mul_(3)
    assert y.to_dense().tolist() == [[3.0, 0.0], [0.0, 3.0]]


def test_the_gradient_of_values_reaches_who_gave_them() -> None:
    values = votive.tensor([1.0, 2.0], requires_grad=True)
    x = votive.sparse_coo_tensor([[0, 0], [1, 1]], values, (2, 2))
    (votive.sparse.mm(x, votive.full((2, 1), 3.0)) ** 2).sum().backward()
    assert values.grad.tolist() == [54.0, 54.0]


def test_second_derivatives() -> None:
    x = (votive.eye(2, dtype=votive.float64) * 2).to_sparse_csr().requires_grad_()
    d = votive.ones(2, 2, dtype=votive.float64, requires_grad=True)
    check = votive.sparse.as_sparse_gradcheck(votive.autograd.gradcheck)
    assert check(lambda x, d: votive.sparse.mm(x, d), (x, d), masked=True)
    (g,) = votive.autograd.grad((votive.sparse.mm(x, d) ** 2).sum(), x, create_graph=True)
    (gg,) = votive.autograd.grad(g.values().sum(), d)
    assert gg.tolist() == [[8.0, 8.0], [8.0, 8.0]]


def test_repeated_indices_have_one_gradient() -> None:
    x = votive.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (2,)).requires_grad_()
    (x.to_dense() * 3).sum().backward()
    assert x.grad.to_dense().tolist() == [3.0, 0.0]


def test_what_has_no_rule_says_so_and_what_to_do() -> None:
    with pytest.raises(NotImplementedError, match=r"exp: .*SparseCOO tensors .exp of zero is not zero.; use .to_dense"):
        votive.eye(2).to_sparse().exp()
    with pytest.raises(NotImplementedError, match=r"SparseCSR"):
        votive.nn.functional.conv2d(votive.ones(1, 1, 2, 2), votive.eye(2).to_sparse_csr())
    with pytest.raises(RuntimeError, match="reshape is not implemented for SparseCSC"):
        votive.eye(2).to_sparse_csc().reshape(4)


def test_dense_calls_stay_on_their_path_once_there_are_sparse_tensors() -> None:
    votive.eye(2).to_sparse()
    assert votive.ones(3).view(3, 1).sum().item() == 3
    assert votive.cat([votive.ones(2), votive.zeros(1)]).tolist() == [1.0, 1.0, 0.0]


def test_the_switch_of_invariants() -> None:
    check = votive.sparse.check_sparse_tensor_invariants
    assert not check.is_enabled()
    with check(), pytest.raises(RuntimeError, match="crow_indices"):
        votive.sparse_csr_tensor([0, 2, 1], [0, 1], [1.0, 2.0], (2, 2))
    assert not check.is_enabled()

    @check()
    def inside() -> bool:
        return check.is_enabled()

    assert inside()
    assert votive.sparse_csr_tensor([0, 2, 1], [0, 1], [1.0, 2.0], (2, 2))._nnz() == 2


def test_copies_and_pickles() -> None:
    for x in (votive.eye(3).to_sparse(), votive.eye(3).to_sparse_csr(), votive.eye(4).to_sparse_bsc((2, 2))):
        x.requires_grad_()
        for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            assert type(y) is type(x)
            assert y.layout is x.layout
            assert y.requires_grad
            assert votive.equal(y.detach(), x.detach())
            assert y._values().data_ptr() != x._values().data_ptr()


def test_resizing() -> None:
    x = votive.eye(2).to_sparse()
    x.sparse_resize_((3, 3), 2, 0)
    assert x.to_dense().tolist() == [[1.0, 0, 0], [0, 1.0, 0], [0, 0, 0]]
    x.sparse_resize_and_clear_((2, 5), 1, 1)
    assert (x._nnz(), x.sparse_dim(), x.dense_dim()) == (0, 1, 1)


def test_in_place_forms_keep_the_object() -> None:
    x = votive.eye(2).to_sparse()
    y = x
    x += x
    x *= 3
    assert y is x
    assert y.to_dense().tolist() == [[6.0, 0.0], [0.0, 6.0]]
    leaf = votive.eye(2).to_sparse().requires_grad_()
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.mul_(2)


@pytest.mark.parity
def test_scipy_looks_at_the_same_memory() -> None:
    scipy = pytest.importorskip("scipy.sparse")
    dense = np.array([[0, 1.5, 0, 0], [2, 0, 0, 3]])
    for kind in ("csr", "csc", "coo", "bsr"):
        theirs = getattr(scipy, f"{kind}_array")(dense)
        ours = votive.sparse.from_scipy(theirs)
        assert ours.layout.name == f"sparse_{kind}"
        np.testing.assert_array_equal(ours.to_dense().numpy(), dense)
        theirs.data.reshape(-1)[0] += 1
        np.testing.assert_array_equal(ours.to_dense().numpy(), theirs.toarray())
        back = ours.to_scipy()
        assert back.format == kind
        assert np.shares_memory(back.data, theirs.data)
        np.testing.assert_array_equal(back.toarray(), theirs.toarray())
    assert np.shares_memory(votive.eye(2).to_sparse_csr().to_scipy().indices, np.zeros(1)) is False
    with pytest.raises(TypeError, match="csr"):
        votive.sparse.from_scipy(np.eye(2))
